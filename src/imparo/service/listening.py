"""Where a service listens: its addresses, its certificate, and what may be wrong with them."""

import errno
import os
import socket
import ssl

from imparo.service.settings import Settings


def listen(settings: Settings) -> list[socket.socket]:
    """Return sockets that are bound to all addresses of the host.

    Parameters
    ----------
    settings : Settings

    Raises
    ------
    OSError
        If that is not possible, with the reason in words.

    Examples
    --------
    >>> from imparo.service import Settings
    >>> from imparo.service.listening import listen
    >>> (one,) = listen(Settings("learners", port=0))
    >>> one.getsockname()[0]
    '127.0.0.1'
    >>> one.close()
    """
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OSError(
            f"there is no address {host!r} that is known here; give another --host"
        ) from error
    bound: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            # A port that was free for the first is taken for the others, too.
            chosen = bound[0].getsockname()[1] if bound else port
            bound.append(_bound(family, (address[0], chosen, *address[2:])))
    except OSError as error:
        for one in bound:
            one.close()
        raise OSError(_told(error, host, port)) from error
    return bound


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)
        one.set_inheritable(False)
    except BaseException:
        one.close()
        raise
    return one


def _told(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRNOTAVAIL:
        return f"this machine has no address {host!r}; give another --host"
    if error.errno == errno.EACCES:
        return f"port {port} is for the system; give a --port of 1024 or more"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host!r} is taken; give another --port"
    return f"the service cannot listen on {host!r}, port {port} ({error.strerror})"


def check_certificate(
    certificate: str | os.PathLike[str], key: str | os.PathLike[str] | None
) -> None:
    """Raise ValueError, in words, unless a certificate and its key can be used.

    Parameters
    ----------
    certificate, key : path-like
        PEM files.
    """
    for path, what in ((certificate, "CERTIFICATE"), (key, "PRIVATE KEY")):
        if path is None:
            continue
        with open(path, "rb") as file:
            content = file.read(2**20)
        if f"{what}-----".encode() not in content:
            raise ValueError(
                f"{os.fspath(path)!r} is no PEM file with a {what.lower()}: it holds no line "
                f"that ends with {what}-----"
            )
        if b"ENCRYPTED" in content:
            raise ValueError(
                f"the key {os.fspath(path)!r} is encrypted, and nobody may be there to give "
                "the password; give one without (openssl pkey -in KEY -out PLAIN)"
            )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if "MISMATCH" in str(error):
            raise ValueError(
                f"the key {os.fspath(key or certificate)!r} does not belong to the certificate "
                f"{os.fspath(certificate)!r}; give the one that it was made with"
            ) from error
        raise ValueError(
            f"the certificate {os.fspath(certificate)!r} or its key is damaged ({error.reason})"
        ) from error
