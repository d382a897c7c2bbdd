"""A server that is ready late, in the way that its first argument names. Just before that it makes the file
`almost`. Then it waits for a signal."""
import http.server
import os
import signal
import socket
import sys
import threading
import time

kind, place = sys.argv[1:]


def almost():
    time.sleep(0.3)
    open('almost', 'w').close()


class Answers(http.server.BaseHTTPRequestHandler):
    refused = 0

    def do_GET(self):
        if Answers.refused == 3 and not os.path.exists('almost'):
            almost()
        Answers.refused += 1
        self.send_response(200 if Answers.refused > 3 and self.path == '/health?deep' else 503)
        self.end_headers()

    def log_message(self, *_):
        pass


signal.signal(signal.SIGINT, lambda *_: os._exit(0))
kept = []
if kind == 'udp':
    almost()
    kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    kept[0].bind(('127.0.0.1', int(place)))
elif kind == 'file':
    almost()
    with open(place, 'w') as file:
        file.write('new')
elif kind in ('stream', 'datagrams'):
    kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if kind == 'stream' else socket.SOCK_DGRAM))
    if kind == 'stream':
        kept[0].bind(place)
    almost()
    kept[0].listen(8) if kind == 'stream' else kept[0].bind(place)
else:
    server = http.server.HTTPServer(('127.0.0.1', int(place)), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
while True:
    signal.pause()
