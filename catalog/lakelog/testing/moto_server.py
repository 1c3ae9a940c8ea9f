"""An S3 server in this process: moto behind a lock, on 127.0.0.1.

Stock moto checks a condition and stores in two steps, in threads, so two writers can both create the same
key. Here requests are read in parallel and answered in sequence, which makes conditional writes atomic.
"""

import io
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

ACCESS_KEY = "lakelog-testing"
SECRET_KEY = "lakelog-testing-secret"
REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server: its endpoint, and the credentials that it accepts."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = REGION

    @property
    def environment(self) -> dict[str, str]:
        """The credentials as the AWS chain finds them in the environment."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
            # A test must not wait for the metadata service of a cloud machine if it does not run on such a
            # machine.
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def options(self) -> dict[str, str]:
        """The catalog options that lead to it."""
        return {"endpoint": self.endpoint, "region": self.region, "path_style": "true"}

    @contextmanager
    def credentials(self) -> Iterator[None]:
        """Put the credentials into this process's environment, and remove them at the end."""
        old_values = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in old_values.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Give a botocore client for the server, with its credentials, until the block ends."""
        import botocore.session
        from botocore.config import Config

        client = botocore.session.Session().create_client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(s3={"addressing_style": "path"}),
        )
        try:
            yield client
        finally:
            client.close()

    def create_bucket(self, bucket: str) -> str:
        """Create a bucket, unless it exists, and return its URL."""
        from botocore.exceptions import ClientError

        with self.client() as client:
            try:
                client.create_bucket(Bucket=bucket)
            except ClientError as error:
                if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                    raise
        return f"s3://{bucket}"


@contextmanager
def moto_server(bucket: str | None = "lake") -> Iterator[S3Server]:
    """Run moto behind a lock until the block ends. Creates `bucket`.

    All servers of a process share their objects, also after the block: use a bucket or a prefix of your own.
    """
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    app = _OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_quiet(MotoRequestHandler))
    thread = threading.Thread(target=server.serve_forever, name="moto", daemon=True)
    thread.start()
    s3_server = S3Server(f"http://127.0.0.1:{server.server_port}", ACCESS_KEY, SECRET_KEY)
    try:
        if bucket:
            s3_server.create_bucket(bucket)
        yield s3_server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _OneAtATime:
    """A WSGI application that runs another application under a lock, once the request's body is read."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if not environ.get("wsgi.input_terminated"):
            length = int(environ.get("CONTENT_LENGTH") or 0)
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        with self._lock:
            return list(self._app(environ, start_response))


def _quiet(handler: Any) -> Any:
    """Return the handler without its line on stderr for each request."""

    class Quiet(handler):  # type: ignore[misc]
        def log(self, type: str, message: str, *args: Any) -> None:
            return

    return Quiet
