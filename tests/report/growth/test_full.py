"""Every server in every build, on request: rounds of 5 s and of 60 s of load.

GROWTH_ROUNDS is the number of rounds (0: none). GROWTH_SECONDS are the lengths of the load, GROWTH_SERVERS
the servers. GROWTH_SIDE servers run side by side, so the load is modest: a machine with two cores needs
about an hour for five rounds of everything. GROWTH_OPTIONS are further options of quern. GROWTH_KEEP is a
folder where the recordings stay."""
import concurrent.futures
import multiprocessing
import os

import servers
import suite
import verdicts
from suite import Failed, TESTS, failed

ROUNDS = int(os.environ.get('GROWTH_ROUNDS', '0'))
SECONDS = [float(word) for word in os.environ.get('GROWTH_SECONDS', '5 60').split()]
SERVERS = os.environ.get('GROWTH_SERVERS', '').split() or servers.EVERY_SERVER
SIDE = int(os.environ.get('GROWTH_SIDE', '24'))
OPTIONS = os.environ.get('GROWTH_OPTIONS', '').split()
KEEP = os.environ.get('GROWTH_KEEP', '')
suite.TEST_SECONDS = 100000 if ROUNDS else suite.TEST_SECONDS


def requests_in(seconds):
    """A modest load, and enough of it to tell."""
    return int(max(750, 40 * seconds))


def run_one(server, endpoint, seconds, number):
    """The name of a run, and what is wrong with its verdict ('': nothing)."""
    name = f'{server}-{endpoint}-{seconds:g}s-{number}'
    path = os.path.join(KEEP or suite.FOLDER, f'{name}.quern')
    wrong = ''
    try:
        servers.record(server, endpoint, path, requests_in(seconds), seconds, OPTIONS)
        verdicts.judge(server, endpoint, path, '--leak-check=full' in OPTIONS)
    except Failed as reason:
        wrong = str(reason)
    except Exception as error:
        wrong = f'{type(error).__name__}: {error}'
    if not KEEP and os.path.exists(path):
        os.unlink(path)
    return name, wrong


def run_rounds(seconds):
    """All servers and endpoints, some side by side."""
    for server in SERVERS:
        servers.program_of(server)
    runs = [(server, endpoint, seconds, number + 1) for number in range(ROUNDS) for server in SERVERS
            for endpoint in verdicts.ENDPOINTS]
    wrong = 0
    with concurrent.futures.ProcessPoolExecutor(SIDE, multiprocessing.get_context('fork')) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_one, *one) for one in runs]):
            name, reason = done.result()
            wrong += bool(reason)
            if reason:
                print(f'# wrong: {name}: {" ".join(reason.split())[:700]}', flush=True)
    print(f'# {len(runs)} runs of {seconds:g} s, {wrong} wrong', flush=True)
    if wrong:
        failed(f'{wrong} of {len(runs)} verdicts are wrong')


for _seconds in SECONDS if ROUNDS else []:
    TESTS.append((f'full_{_seconds:g}_s', lambda seconds=_seconds: run_rounds(seconds)))
