"""What goes wrong with a lake, in a line each that says what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import MemhouseError, QueryError, WarehouseError, with_remedy
from ..readable import command

# deltalake colours its messages, and draws a tree of their causes.
_DRAWING = re.compile("\x1b\\[[0-9;]*m|[↳\n|]")
_ADDRESS = re.compile(r"https?://[^/\s\"]+")
_FILE = re.compile(r"relation=\w+/[^\s'\"/]+\.parquet")
# How a view tells of a file that it cannot show.
FAULT = "damaged file of the lake"
_TOLD = re.compile(rf"{FAULT}: (?P<file>{_FILE.pattern}) (?P<what>[^\n]*)")
_LONGEST = 200
# What is said in place of a message that has one of these words; the first that is found.
_MEANINGS = (
    (
        "InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|InvalidClientTokenId",
        "the credentials are wrong: check AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY",
    ),
    ("ExpiredToken|RequestExpired", "the credentials have expired: get new ones"),
    (
        "no credentials found in chain|Unable to locate credentials|while loading credentials",
        "there are no credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    (
        "NoSuchBucket|specified bucket does not exist|NoSuchContainer|ContainerNotFound",
        "there is no such bucket: make it, or name another",
    ),
    (
        "PermanentRedirect|Received redirect|AuthorizationHeaderMalformed|301 Moved|307 Temporary",
        "the bucket is in another region: name its region with AWS_REGION",
    ),
    (
        "AccessDenied|Access Denied|403 Forbidden|401 Unauthorized|Forbidden",
        "access is denied: ask the bucket's owner for permission to list and read it, "
        "and to write to it for commands that write",
    ),
    (
        r"[Pp]ermission ?[Dd]enied|os error 13",
        "permission is denied: ask the owner for permission, or name another place",
    ),
    (
        r"Connect\)|dns error|deadline has elapsed|Could not connect|Connect timeout|timed out",
        "{address} does not answer: check the network, and AWS_ENDPOINT_URL if you set it",
    ),
    ("SlowDown|503 Service", "the object store is overloaded: give the same command again later"),
    (
        "Unsupported minimum|is not supported|eatures must be specified|unsupported",
        "a newer program changed its format ({said}): upgrade memhouse and deltalake",
    ),
    (
        "No table metadata or protocol|found gap|Json error|log segment|missing version|"
        "Invalid Checkpoint|Kernel error: Arrow error",
        "its log is damaged: restore the files in _delta_log from a copy",
    ),
)
GONE = (
    "is gone (if the lake was vacuumed meanwhile, give the same command again; in Python, open it "
    "again)"
)
# The same of a data file.
_FAULTS = (
    (
        "No magic bytes|magic bytes not found|too small to be a Parquet|file size is 0 bytes|"
        "TProtocolException|deserialize thrift|[Dd]ecompression fail|Unexpected end of stream",
        "is damaged",
    ),
    (
        "No files found that match|No such file|NoSuchKey|404 Not Found",
        GONE,
    ),
)
_FOREIGN = frozenset(
    {
        "_duckdb",
        "_internal",
        "adlfs",
        "aiohttp",
        "azure",
        "botocore",
        "deltalake",
        "duckdb",
        "gcsfs",
        "google",
        "pyarrow",
    }
)


class DamagedFileError(WarehouseError):
    """A data file of a lake that is not as it was written; `what` says how."""

    def __init__(self, place: str, path: str, what: str) -> None:
        repair = command("lake", "repair", names=[place])
        super().__init__(
            f"cannot use the lake {place}: its file {path} {what}: restore it from a copy, or "
            f"drop what it held with `{repair}`"
        )
        self.what = what


@contextmanager
def lake_errors(place: str) -> Iterator[None]:
    """Errors of deltalake, of the file system and of DuckDB that reads it, as WarehouseError."""
    try:
        yield
    except QueryError as error:
        if not _is_of_files(error.__cause__):
            raise
        raise lake_error(place, error) from error
    except MemhouseError:
        raise
    except Exception as error:
        # Another process was faster: the caller tries again.
        if type(error).__name__ == "CommitFailedError":
            raise
        if not isinstance(error, OSError) and not is_foreign(error):
            raise
        raise lake_error(place, error) from error


def is_foreign(error: Exception) -> bool:
    """Whether an error is of a package that reads or writes files for us."""
    return type(error).__module__.split(".")[0] in _FOREIGN


def lake_error(place: str, error: Exception) -> WarehouseError:
    """What an error means for the user of the lake at a place."""
    whole = str(error.strerror or error) if isinstance(error, OSError) else str(error)
    said = " ".join(_DRAWING.sub(" ", whole).split())
    if fault := _TOLD.search(said):
        return DamagedFileError(place, fault["file"], fault["what"])
    for words, meaning in _MEANINGS:
        if found := re.search(words, said):
            address = _ADDRESS.search(said)
            told = meaning.format(
                address=address[0] if address else "the object store",
                # Without what deltalake says of its own parts first.
                said=said[: found.start()].rpartition(": ")[2] + said[found.start() :][:_LONGEST],
            )
            return WarehouseError(f"cannot use the lake {place}: {told}")
    for words, what in _FAULTS:
        if re.search(words, said):
            file = _FILE.search(str(error))
            return DamagedFileError(place, file[0] if file else "of rows", what)
    # What damage makes of a file's header may be no text.
    said = "".join(sign if sign.isprintable() and sign != "\ufffd" else "?" for sign in said)
    said = said if len(said) <= _LONGEST else said[:_LONGEST] + "…"
    look = command("lake", "check", "--read-data", names=[place])
    return WarehouseError(
        f"cannot use the lake {place}: {with_remedy(said)}; `{look}` names damaged files"
    )


def _is_of_files(cause: BaseException | None) -> bool:
    """Whether DuckDB could not read the files; else the query is wrong."""
    if type(cause).__name__ in ("IOException", "HTTPException", "PermissionException"):
        return True
    # Of a damaged file DuckDB says that the input is wrong, as of a wrong query, and its name.
    return type(cause).__name__ == "InvalidInputException" and bool(_FILE.search(str(cause)))
