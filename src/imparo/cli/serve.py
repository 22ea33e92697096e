"""``imparo serve``: learners that are taught by showing, over HTTP and on a page."""

import json
import socket
from pathlib import Path
from urllib.parse import quote

import click

from imparo.cli.common import console, guarded
from imparo.cli.learn import NumberOr

_LEVELS = ("debug", "info", "warning", "error")


@click.command("serve")
@click.argument(
    "folder", type=click.Path(file_okay=False, path_type=Path), default="imparo-learners"
)
@click.option(
    "--host", default="127.0.0.1", show_default=True,
    help="Where to listen. Other than this machine's own addresses need a token.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True,
    help="0 takes a free one.",
)  # fmt: skip
@click.option(
    "--token", envvar="IMPARO_TOKEN", metavar="TEXT",
    help="What everyone must show; better as IMPARO_TOKEN or by --token-file. Made where one "
    "is needed and none is given.",
)  # fmt: skip
@click.option(
    "--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the token.",
)  # fmt: skip
@click.option(
    "--sync", type=NumberOr("always", "never"), default="always", show_default=True,
    help="When an example is acknowledged: on disk, on disk within seconds, or written.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(min=0), default=2000.0, show_default=True,
    metavar="NUMBER", help="Requests a second from one address; 0: any number.",
)  # fmt: skip
@click.option("--memory", metavar="BYTES", help="That all learners may take, such as 2GB; 4GB.")
@click.option(
    "--certificate", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file, for https: cameras of phones need it.",
)  # fmt: skip
@click.option(
    "--key", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file with the certificate's key.",
)  # fmt: skip
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to log, to standard error.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(_LEVELS), default="info", show_default=True,
    help="debug tells every request.",
)  # fmt: skip
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
@guarded
def serve(
    folder: Path, host: str, port: int, token: str | None, token_file: Path | None,
    sync: str | float, rate: float, memory: str | None, certificate: Path | None,
    key: Path | None, log: str, log_level: str, show: bool,
) -> None:  # fmt: skip
    """Serve the learners in FOLDER, and a page to teach them by showing.

    Every example is on disk before it is acknowledged: kill the service at any moment, and it
    goes on where it was. Only this machine can reach it, unless --host says otherwise; then a
    token is needed, and one is made if none is given. Needs pip install 'imparo[service]'.

    \b
    Examples:
      imparo serve
      imparo serve robot/ --port 9000 --log json
      imparo serve --host 0.0.0.0 --certificate cert.pem --key key.pem
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
    from imparo.extras import require

    for package in ("fastapi", "uvicorn", "httptools", "websockets", "PIL"):
        require(package, "service")
    import imparo.service as service
    from imparo.engine import parse_memory
    from imparo.service.logs import set_up
    from imparo.service.tokens import new_token

    if token is not None and token_file is not None:
        raise click.UsageError("give --token or --token-file, not both")
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key go together")
    where = "the token"
    if token_file is not None:
        token, where = _token_in(token_file), f"the token in {str(token_file)!r}"
    if token is not None and (len(token) < 16 or not token.isprintable()):
        raise ValueError(
            f"{where} has {len(token)} characters; give at least 16 that can be printed, or "
            "leave it out to have one made"
        )
    made = token is None and not service.is_local(host)
    limits = service.Limits(rate=rate) if memory is None else service.Limits(
        rate=rate, memory=parse_memory(memory)
    )  # fmt: skip
    settings = service.Settings(
        folder, host=host, port=port, token=new_token() if made else token,
        sync="always" if sync == 0 else sync, limits=limits, tls=certificate is not None,
    )  # fmt: skip
    set_up(log, log_level)
    out = console(markup=False)

    def told(url: str) -> None:
        link = f"{url}?token={quote(settings.token, safe='')}" if settings.token else url
        # Who gave the token knows it, and logs are read by others.
        shown = link if made else url
        if log == "text":
            out.print(f"Teach it by showing: {shown}", soft_wrap=True, highlight=False)
            if host in ("0.0.0.0", "::"):
                there = shown.replace("localhost", socket.gethostname())
                out.print(f"On other machines:   {there}", soft_wrap=True, highlight=False)
            out.print(f"Learners: {settings.folder}", soft_wrap=True, highlight=False)
            out.print("Ctrl-C ends it; everything taught is kept.", highlight=False)
        elif made:
            out.print(json.dumps({"url": shown}), soft_wrap=True, highlight=False)
        if show:
            click.launch(link)

    service.serve(settings, certificate=certificate, key=key, told=told)
    if log == "text":
        out.print("Ended; everything is on disk.", highlight=False)


def _token_in(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(path)!r} is no text; --token-file is a file with the token in one line"
        ) from error
