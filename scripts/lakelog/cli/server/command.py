"""The commands of the server for clients of Iceberg's REST catalog: serve, and token for its callers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from socket import socket
from typing import Any

import click

from lakelog.catalog import Catalog, Observation, engine, to_opentelemetry
from lakelog.cli import answer
from lakelog.cli.options import Place, takes_place
from lakelog.cli.server.log import ServerLog
from lakelog.cli.server.vending import VendingOptions, vending_options, with_vending_options
from lakelog.log.errors import LakelogError
from lakelog.rest import WarehouseAnswers, WritableAnswers
from lakelog.rest import serve as run_server
from lakelog.rest.access import (
    IssuerGate,
    IssuerUnavailable,
    OpenGate,
    ReloadedFile,
    RequestGate,
    TokenGate,
    hash_of,
    new_token,
    rights_of,
    tokens_of,
)
from lakelog.rest.serving import (
    LOOPBACK,
    PORT,
    ServerLimits,
    ServerSettings,
    TlsFiles,
    check_installed,
    listening,
    request_spans,
    serve_in_workers,
    url_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """The options that say how a server knows its callers."""

    issuer: str | None
    audience: str | None
    name_claim: str
    keys_url: str | None
    tokens: str | None
    rights: str | None

    @property
    def asks_for_tokens(self) -> bool:
        return self.issuer is not None or self.tokens is not None

    def check(self) -> None:
        """Raise a usage error for options that contradict each other."""
        if self.issuer is not None and self.tokens is not None:
            raise click.UsageError("callers have tokens of --issuer or of --tokens: choose one of both")
        if (self.issuer is None) != (self.audience is None):
            raise click.UsageError(
                "--issuer and --audience belong together: the audience is the name of this server at the issuer"
            )
        if self.keys_url is not None and self.issuer is None:
            raise click.UsageError("--keys-url is for --issuer: give the issuer, too")
        if self.asks_for_tokens and self.rights is None:
            raise click.UsageError("no caller would have a right: give the file of rights by --rights")
        if self.rights is not None and not self.asks_for_tokens:
            raise click.UsageError(
                "rights are for callers that the server knows: give --tokens or --issuer, too"
            )

    def gate(self) -> RequestGate:
        """Return the gate, with its files read and its keys fetched. Raises InvalidInput."""
        if self.rights is None:
            return OpenGate()
        rights = ReloadedFile(self.rights, rights_of)
        if self.tokens is not None:
            return TokenGate(ReloadedFile(self.tokens, tokens_of, secret=True), rights)
        engine.package("jwt", "a server with an issuer", "pyjwt[crypto]", "serve")
        from lakelog.rest.access.issuers import TokenIssuer

        try:
            issuer = TokenIssuer(
                str(self.issuer), str(self.audience), name_claim=self.name_claim, keys_url=self.keys_url
            )
        except IssuerUnavailable as error:
            raise click.ClickException(
                f"the keys of the issuer {self.issuer} cannot be had: {error}"
            ) from None
        return IssuerGate(issuer, rights)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseServer:
    """A server of a warehouse, as its own process makes it. It can be pickled."""

    place: Place
    settings: ServerSettings
    access: AccessOptions
    vendor: VendingOptions | None
    write: bool
    quiet: bool
    opentelemetry: bool

    def __call__(self, listener: socket) -> None:
        """Serve in a process of several. An error is in the log, as the command would print it."""
        with self.log().kept():
            try:
                self.run(self.catalog(), listener, lambda url, server: None)
            except (LakelogError, click.ClickException, OSError) as error:
                message = error.format_message() if isinstance(error, click.ClickException) else str(error)
                self.log().event("failed", f"a process of the server cannot serve: {message}")
                sys.exit(1)

    def log(self) -> ServerLog:
        return ServerLog(as_json=self.place.as_json, quiet=self.quiet)

    def run(self, catalog: Catalog, listener: socket, began: Callable[[str, Any], None]) -> bool:
        """Serve until a signal comes. Return whether that was Ctrl-C."""
        vendor = None if self.vendor is None else self.vendor.vendor()
        answers = (WritableAnswers if self.write else WarehouseAnswers)(catalog, vendor)
        outcome = run_server(
            answers,
            began=began,
            asked=self.log().request,
            gate=self.access.gate(),
            settings=self.settings,
            check_ready=answers.check_ready,
            span=request_spans() if self.opentelemetry else None,
            listener=listener,
        )
        if outcome.running_count:
            self.log().event(
                "ended", f"{outcome.running_count} requests did not end in time, and end with the server now"
            )
            sys.stderr.flush()
            # Threads would be waited for. The log settles their commits as after any death.
            os._exit(1)
        return outcome.is_interrupted

    def catalog(self) -> Catalog:
        """Return the warehouse, with the hooks for its operations. Raises NotFound, or Unsupported for the hooks."""
        hooks: list[Callable[[Observation], None]] = []
        if self.place.costs is not None:
            hooks.append(self.place.costs)
        if self.opentelemetry:
            hooks.append(to_opentelemetry())
            request_spans()  # a library that is missing is an error before anything listens
        return self.place.catalog(partial(_observed_by, hooks) if hooks else None)


def _observed_by(hooks: list[Callable[[Observation], None]], observation: Observation) -> None:
    for hook in hooks:
        hook(observation)


FILE = click.Path(dir_okay=False)


@click.command()
@click.option(
    "--host", default=LOOPBACK, show_default=True, metavar="ADDRESS", help="The address to listen at."
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port to listen at; 0 takes a free port.",
)
@click.option("--write", is_flag=True, help="Let clients create, change and drop tables, too.")
@click.option("--tls-cert", type=FILE, metavar="FILE", help="The certificate, with those above it, in PEM.")
@click.option("--tls-key", type=FILE, metavar="FILE", help="The certificate's key, in PEM.")
@click.option("--behind-proxy", is_flag=True, help="A proxy has TLS, and passes requests of other hosts on.")
@click.option("--issuer", metavar="URL", help="The OAuth2 issuer of the callers' tokens.")
@click.option(
    "--audience", metavar="NAME", help="This server's name at the issuer, as tokens have it in aud."
)
@click.option(
    "--name-claim",
    default="sub",
    show_default=True,
    metavar="CLAIM",
    help="The claim of a token with the caller's name.",
)
@click.option("--keys-url", metavar="URL", help="The issuer's keys. [default: as the issuer says itself]")
@click.option("--tokens", type=FILE, metavar="FILE", help="The callers' tokens by their hashes, in TOML.")
@click.option("--rights", type=FILE, metavar="FILE", help="The callers' rights, in TOML.")
@with_vending_options
@click.option(
    "--threads",
    default=ServerLimits().threads,
    show_default=True,
    type=click.IntRange(1, 1000),
    metavar="N",
    help="The requests that a process answers at once.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    metavar="N",
    help="The processes that answer.",
)
@click.option(
    "--stop-within",
    default=ServerLimits().stop_s,
    show_default=True,
    type=click.FloatRange(1, 3600),
    metavar="SECONDS",
    help="The time for requests that run when the server is stopped.",
)
@click.option(
    "--drain",
    default=ServerLimits().drain_s,
    show_default=True,
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    help="How long it still takes requests after SIGTERM, while /ready says that it ends.",
)
@click.option(
    "--opentelemetry", is_flag=True, help="Send spans and metrics, as the process has OpenTelemetry set up."
)
@click.option("--quiet", is_flag=True, help="Print no requests.")
@takes_place
def serve(
    place: Place,
    host: str,
    port: int,
    write: bool,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    threads: int,
    workers: int,
    stop_within: float,
    drain: float,
    opentelemetry: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Answer clients of Iceberg's REST catalog.

    It runs until Ctrl-C or SIGTERM, and finishes the requests that it has begun. Without --write, requests that change
    something are refused. Clients get names and metadata here, and read and write data in the store itself, by
    credentials of their own, or by those that --vend-role hands out. A table is exported when a client loads it. With
    --write, each commit of a client is a version of the table's log.

    At an address of this host alone, as by default, it asks for no token. At any other address, and behind a proxy, it
    needs callers with tokens and rights: --tokens or --issuer, and --rights. Tokens must not travel in the open, so
    there it needs --tls-cert and --tls-key, or --behind-proxy.

    There is no state beside the warehouse, and any number of servers agree. GET /health and /ready are for those who
    watch over it. With --json, its log is JSON, a line for each request.
    """
    access = AccessOptions(**{name: value for name, value in options.items() if not name.startswith("vend_")})
    access.check()
    vendor = vending_options(place, options, asks_for_tokens=access.asks_for_tokens)
    settings = ServerSettings(
        host=host,
        port=port,
        tls=_tls_files(tls_cert, tls_key),
        behind_proxy=behind_proxy,
        limits=ServerLimits(threads=threads, stop_s=stop_within, drain_s=drain),
    )
    _check_open(settings, access)
    check_installed()
    if place.costs is not None and workers > 1:
        raise click.UsageError("--verbose counts the requests of a single process: leave it or --workers out")
    server = WarehouseServer(
        place=place,
        settings=settings,
        access=access,
        vendor=vendor,
        write=write,
        quiet=quiet,
        opentelemetry=opentelemetry,
    )
    catalog = server.catalog()  # a warehouse that is not there is an error before anything listens
    if vendor is not None:
        vendor.check()
    try:
        listener = listening(settings)
    except OSError as error:
        raise click.ClickException(
            f"cannot listen at {host}:{port} ({error.strerror}): choose another --host or --port"
        ) from None
    with server.log().kept(), listener:
        if _runs(server, catalog, listener, workers):
            raise KeyboardInterrupt


def _runs(server: WarehouseServer, catalog: Catalog, listener: socket, workers: int) -> bool:
    """Run the server. Return whether Ctrl-C has ended it."""
    place, log = server.place, server.log()

    def began(url: str, running: object) -> None:
        mode = "for reading and writing" if server.write else "read only"
        asks = "" if server.access.asks_for_tokens else " It asks for no token."
        log.event(
            "serving",
            f"Serving {place.required_warehouse} at {url}, {mode}. Ctrl-C ends it.{asks}",
            url=url,
            warehouse=place.required_warehouse,
            write=server.write,
            workers=workers,
        )

    if workers == 1:
        return server.run(catalog, listener, began)
    server.access.gate()  # a file that is refused is an error before a process starts
    address, port = listener.getsockname()[:2]
    began(url_of(server.settings, str(address), port), None)
    outcome = serve_in_workers(
        replace(server, place=replace(place, costs=None)), listener, server.settings, workers
    )
    if not outcome.is_in_order:
        click.get_current_context().exit(1)  # the log has the reason
    return outcome.is_interrupted


def _tls_files(certificate: str | None, key: str | None) -> TlsFiles | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--tls-cert and --tls-key belong together: give both")
    files = TlsFiles(certificate, key)
    files.check()
    return files


def _check_open(settings: ServerSettings, access: AccessOptions) -> None:
    """Raise a usage error for a server that other hosts reach without tokens, or with tokens in the open."""
    if settings.is_local:
        return
    place = f"at {settings.host}" if not settings.behind_proxy else "behind a proxy"
    if not access.asks_for_tokens:
        raise click.UsageError(
            f"other hosts reach a server {place}, and it would let all of them in: give --tokens or --issuer, and "
            f"--rights, or listen at {LOOPBACK}"
        )
    if settings.tls is None and not settings.behind_proxy:
        raise click.UsageError(
            f"tokens would travel to {settings.host} in the open: give --tls-cert and --tls-key, or --behind-proxy "
            "if a proxy has TLS"
        )


@click.command()
@click.argument("name")
@takes_place
def token(place: Place, name: str) -> None:
    """Make a token for the caller NAME of lakelog serve --tokens.

    It prints the token, for the caller alone, and the line for the file, which has only its hash. Nothing keeps the
    token, so it cannot be printed again.
    """
    if not name:
        raise click.UsageError("a caller has a name: give NAME")
    secret = new_token()
    line = f'{json.dumps(name, ensure_ascii=False)} = "{hash_of(secret)}"'
    if place.as_json:
        answer.in_json({"token": secret, "name": name, "hash": hash_of(secret)})
    else:
        answer.say(secret)
        answer.say(f"The line for the file, below [tokens]: {line}", err=True)


COMMANDS = (serve, token)
