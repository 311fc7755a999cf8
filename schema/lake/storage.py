"""Where a lake is, and how an object store is reached."""

import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import MissingPackageError, WarehouseError

# How S3 is reached: the same for deltalake, which reads the log, and s3fs, which reads files.
#
# Left alone, they differ. s3fs takes everything from the AWS configuration of the user but
# ignores AWS_REGION; deltalake reads no region and no endpoint from files, no profile where an
# endpoint is set, and refuses http without a word that allows it.

# s3fs tries five times, and botocore this often each time. Its own timeout is a minute.
_ATTEMPTS = 2
_CONNECT_SECONDS = 2


@dataclass(frozen=True)
class S3Settings:
    """region, endpoint: None for what S3 itself uses."""

    region: str | None
    endpoint: str | None

    def for_deltalake(self) -> dict[str, str]:
        """Its storage options."""
        found = {
            "AWS_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint,
            # Of the scheme http, the user has said that it is allowed.
            "AWS_ALLOW_HTTP": "true" if (self.endpoint or "").startswith("http://") else None,
            # Profiles, and whatever else gives credentials, also where an endpoint is set.
            "AWS_FORCE_CREDENTIAL_LOAD": "true",
            # Of two commits of one version one must fail, whatever the environment says.
            "AWS_S3_ALLOW_UNSAFE_RENAME": "false",
            "AWS_CONDITIONAL_PUT": "etag",
        }
        return {name: value for name, value in found.items() if value is not None}

    def for_s3fs(self) -> dict[str, Any]:
        """The arguments of its file system."""
        client = {"region_name": self.region, "endpoint_url": self.endpoint}
        return {
            "client_kwargs": {name: value for name, value in client.items() if value is not None},
            "config_kwargs": {
                "connect_timeout": _CONNECT_SECONDS,
                "retries": {"total_max_attempts": _ATTEMPTS},
            },
        }


def s3_settings() -> S3Settings:
    """What the environment and the user's AWS configuration say. Raises WarehouseError."""
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    session = Session()
    try:
        region = os.environ.get("AWS_REGION") or session.get_config_variable("region")
        endpoint = _endpoint(session)
    except BotoCoreError as error:
        said = " ".join(str(error).split())
        raise WarehouseError(f"cannot use S3: {said}: see AWS_PROFILE and ~/.aws/config") from None
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise WarehouseError(f"the endpoint {endpoint} is not a URL: write http://{endpoint}")
    return S3Settings(region, endpoint)


def _endpoint(session: Any) -> str | None:
    """The endpoint for S3, else that for all services; variables go before the profile."""
    if session.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    profile = session.get_scoped_config()
    services = session.full_config.get("services", {}).get(profile.get("services"), {})
    places = (
        os.environ.get("AWS_ENDPOINT_URL_S3"),
        os.environ.get("AWS_ENDPOINT_URL"),
        services.get("s3", {}).get("endpoint_url"),
        profile.get("endpoint_url"),
    )
    return next((place for place in places if place), None)


# Where a lake is: a folder, or a URL of an object store.

_URL = re.compile(r"(?P<scheme>s3a?|gs|gcs|abfss?|az|file)://(?P<rest>.*)")
# A slip in a URL must not make a folder of that name; one letter is a drive of Windows.
_NO_FOLDER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# What some programs call a scheme.
OTHER_NAMES = {"s3a": "s3", "gcs": "gs"}
# The package of each scheme's file system, by fsspec's choice.
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
# A wrong address says so after ten seconds.
_DELTALAKE = {"connect_timeout": "2s", "max_retries": "4"}
# Other processes write to the same folders, and a later call may have other credentials.
_FILE_SYSTEM: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
# Without this they read 50 MB ahead wherever DuckDB reads.
_AHEAD_BYTES = 64 << 10
_ARGUMENTS = {
    "s3fs": {"default_block_size": _AHEAD_BYTES},
    "gcsfs": {"block_size": _AHEAD_BYTES},
    "adlfs": {"blocksize": _AHEAD_BYTES},
}


def is_lake(db: str) -> bool:
    """Whether `db` names a lake: a URL of an object store, or a folder that holds one."""
    return bool(_URL.fullmatch(db)) or ("://" not in db and (Path(db) / "_delta_log").is_dir())


def location(db: str) -> str:
    """The place of a lake as all of its readers take it: a folder's whole path, or a URL.

    Raises WarehouseError for a URL that no lake can have.
    """
    found = _URL.fullmatch(db)
    if found is None:
        if _NO_FOLDER.match(db):
            raise WarehouseError(
                f"{db} is not a URL of a lake: use s3://, gs://, abfs://, az:// or a folder"
            )
        return str(Path(db).resolve())
    if not found["rest"].strip("/"):
        raise WarehouseError(f"{db} names no bucket: give one, as in s3://bucket/memhouse")
    if found["scheme"] == "file":
        return str(Path(found["rest"]).resolve())
    scheme = OTHER_NAMES.get(found["scheme"], found["scheme"])
    return f"{scheme}://{found['rest'].rstrip('/')}"


@cache
def options(place: str) -> dict[str, str]:
    """What deltalake must be told to reach the place as the file system does.

    Raises MissingPackageError, and WarehouseError if the user's configuration is wrong.
    """
    scheme = _scheme(place)
    _need(_PACKAGES.get(scheme))
    if scheme == "file":
        return {}
    return _DELTALAKE | (_s3().for_deltalake() if scheme == "s3" else {})


def filesystem(place: str) -> Any:
    """The fsspec file system of a place, for small reads here and there in large files.

    Raises as `options` does.
    """
    return _filesystem(_scheme(place))


def sizes(place: str) -> dict[str, int]:
    """The bytes of each file of the place, by its path in it.

    Raises OSError, and WarehouseError for a symbolic link: whoever follows it, as a vacuum does,
    leaves the lake.
    """
    if "://" not in place:
        found = {}
        for folder, folders, names in os.walk(place):
            for path in (Path(folder, name) for name in (*folders, *names)):
                if path.is_symlink():
                    raise WarehouseError(
                        f"cannot use the lake {place}: {path.relative_to(place)} is a symbolic "
                        "link, and may lead out of the lake: remove it"
                    )
            for path in (Path(folder, name) for name in names):
                found[path.relative_to(place).as_posix()] = path.stat().st_size
        return found
    files = filesystem(place).find(place, detail=True)
    root = place.split("://")[-1].rstrip("/") + "/"
    return {
        path.split("://")[-1].removeprefix(root): int(info["size"]) for path, info in files.items()
    }


@cache
def _filesystem(scheme: str) -> Any:
    """One client for all places of a scheme: each has its own connections and memory."""
    import fsspec

    package = _PACKAGES.get(scheme)
    _need(package)
    if package is None:
        return fsspec.filesystem(scheme)
    arguments = _FILE_SYSTEM | _ARGUMENTS.get(package, {})
    return fsspec.filesystem(scheme, **arguments, **(_s3().for_s3fs() if scheme == "s3" else {}))


def forget() -> None:
    """Read settings and credentials anew: in a long session they change."""
    options.cache_clear()
    _filesystem.cache_clear()


def _scheme(place: str) -> str:
    return place.partition("://")[0] if "://" in place else "file"


def _need(package: str | None) -> None:
    """Raise MissingPackageError unless fsspec and the package of a file system are there."""
    if find_spec("fsspec") is None:
        raise MissingPackageError("a lake needs fsspec: pip install 'memhouse[lake]'")
    if package is not None and find_spec(package) is None:
        raise MissingPackageError(f"this lake needs {package}: pip install {package}")


def _s3() -> "S3Settings":
    # botocore takes long to import, and only S3 needs it.

    return s3_settings()
