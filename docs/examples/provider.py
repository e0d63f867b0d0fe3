#!/usr/bin/env python3
"""A provider: the program behind `--provider webhook` of the ingress-controller (docs/webhook-provider.md).

It keeps what it is told in memory and in a file, and prints where requests would go. Replace `configure` by what your load
balancer needs. Python 3.8 or newer, the standard library only.

    provider.py --listen 127.0.0.1:9000 --state /var/lib/provider.json
"""

import argparse
import hmac
import json
import os
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGEST_BODY = 64 << 20


class Refused(Exception):
    """What the controller asks for cannot be served. The message becomes an Event on the MultiClusterIngress."""


def configure(ingress):
    """Has the load balancer serve `ingress`, and returns the addresses at which it does, or None if they are not known.

    Called again with the same ingress it must change nothing. It must return within ten seconds: what takes longer is done
    aside, and how it ended is told in the list, as the field `problem`.
    """
    endpoints = {(b["service"], b["port"]): b["endpoints"] for b in ingress["backends"]}
    for route in ingress["routes"]:
        if route["pathType"] not in ("Exact", "Prefix", "ImplementationSpecific"):
            raise Refused("no path of type " + route["pathType"])
        backend = route["backend"]
        behind = endpoints[backend["service"], backend["port"]]
        # Those that are not ready finish what they have, and get no new request.
        ready = ["%(address)s:%(port)s (%(cluster)s)" % one for one in behind if one["ready"]]
        print(route["host"] or "*", route["path"], "->", ", ".join(ready) or "503", flush=True)
    return None


def remove(ingress):
    """Has the load balancer serve `ingress` no more."""
    print("removed", ingress["namespace"] + "/" + ingress["name"], flush=True)


class Store:
    """The ingresses that are held, by namespace and name."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.held = {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.held = {(one["namespace"], one["name"]): one for one in json.load(file)}

    def save(self):
        if self.path:
            # Whole or not at all: the file may be read after a crash.
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump(list(self.held.values()), file)
            os.replace(self.path + ".new", self.path)

    def put(self, key, ingress):
        with self.lock:
            before = self.held.get(key)
            if before and before["controller"] != ingress["controller"]:
                return 409, {"message": "held for " + before["controller"]}
            addresses = configure(ingress)
            self.held[key] = ingress
            self.save()
        return 200, {"loadBalancer": {"ingress": addresses}} if addresses else {}

    def delete(self, key):
        with self.lock:
            ingress = self.held.pop(key, None)
            if ingress:
                remove(ingress)
                self.save()
        return 200, {}

    def get(self, key):
        with self.lock:
            ingress = self.held.get(key)
        return (200, ingress) if ingress else (404, {"message": "not held"})

    def list(self):
        fields = ("controller", "namespace", "name", "revision")
        with self.lock:
            held = list(self.held.values())
        return 200, {"ingresses": [{field: one[field] for field in fields} for one in held]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None
    token_file = None

    def is_admitted(self):
        if not self.token_file:
            return True
        # Read anew each time, because it rotates.
        with open(self.token_file, encoding="ascii") as file:
            expected = "Bearer " + file.read().strip()
        return hmac.compare_digest(self.headers.get("Authorization", "").encode(), expected.encode())

    def reply(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY:
            self.close_connection = True
            return 413, {"message": "the ingress is too large"}
        body = self.rfile.read(length)
        if not self.is_admitted():
            return 401, {"message": "another token is expected"}
        parts = self.path.partition("?")[0].strip("/").split("/")
        if self.command == "GET" and parts == [""]:
            return self.store.list()
        if len(parts) != 2:
            return 404, {"message": "there are / and /NAMESPACE/NAME"}
        key = tuple(parts)
        if self.command != "PUT":
            return self.store.get(key) if self.command == "GET" else self.store.delete(key)
        try:
            ingress = json.loads(body)
            if (ingress["namespace"], ingress["name"]) != key:
                raise Refused("the path is of another ingress")
            return self.store.put(key, ingress)
        except (ValueError, KeyError, TypeError) as error:
            return 400, {"message": "no ingress of this protocol: %r" % error}
        except Refused as error:
            return 422, {"message": str(error)}

    def answer(self):
        try:
            status, content = self.reply()
        except Exception as error:  # pylint: disable=broad-except
            # The controller asks again after a while.
            status, content = 500, {"message": repr(error)}
        content = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_DELETE = answer

    def log_message(self, *arguments):
        """Keeps quiet."""


def main():
    parser = argparse.ArgumentParser(description="A provider for the ingress-controller of karmada-rs")
    parser.add_argument("--listen", default="127.0.0.1:9000", metavar="IP:PORT")
    parser.add_argument("--state", metavar="FILE", help="keeps what is held over a restart")
    parser.add_argument("--token-file", metavar="FILE", help="the bearer token that is expected")
    parser.add_argument("--certificate", metavar="FILE", help="certificate chain and key, in PEM, for HTTPS")
    arguments = parser.parse_args()
    Handler.store = Store(arguments.state)
    Handler.token_file = arguments.token_file
    host, _, port = arguments.listen.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Handler)
    server.daemon_threads = True
    if arguments.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("listening on %s:%d" % server.server_address[:2], file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
