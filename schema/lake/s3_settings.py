"""How S3 is reached: the same for deltalake, which reads the log, and s3fs, which reads files.

Left alone, they differ. s3fs takes everything from the AWS configuration of the user but
ignores AWS_REGION; deltalake reads no region and no endpoint from files, no profile where an
endpoint is set, and refuses http without a word that allows it.
"""

import os
from dataclasses import dataclass
from typing import Any

from ..errors import WarehouseError

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
