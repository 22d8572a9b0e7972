"""The explorer on this machine's own address, for this machine alone."""

import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from posenc.explorer.bundling import page, policy

ADDRESS = "127.0.0.1"
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Page(BaseHTTPRequestHandler):
    """Answers GET and HEAD of ``/`` with the page, and nothing else."""

    server_version = "posenc"
    sys_version = ""

    def do_GET(self) -> None:
        # A foreign site can point a name of its own here; it cannot make the Host header ours.
        port = self.connection.getsockname()[1]
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            return self.send_error(421, "This server answers to 127.0.0.1 and localhost only")
        if self.path.split("?")[0] != "/":
            return self.send_error(404, "There is one page, at /")
        body = page().encode()
        self.send_response(200)
        headers = {**HEADERS, "Content-Length": str(len(body))}
        headers["Content-Security-Policy"] = f"{policy()}; frame-ancestors 'none'"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the terminal belongs to the command."""


def server(port: int = 0) -> ThreadingHTTPServer:
    """A server of the page, bound to the loopback address; port 0 lets the system choose one."""
    page()  # a page that cannot be built is reported here, not to the browser
    return ThreadingHTTPServer((ADDRESS, port), Page)


def serve(port: int, browser: bool) -> None:
    """Serves until Ctrl-C, which is how it is meant to end."""
    with server(port) as here:
        address = f"http://{ADDRESS}:{here.server_address[1]}/"
        print(f"The explorer is at {address} (Ctrl-C ends it)", flush=True)
        if browser:
            webbrowser.open(address)
        try:
            here.serve_forever()
        except KeyboardInterrupt:
            print("\nThe explorer has ended.", flush=True)
