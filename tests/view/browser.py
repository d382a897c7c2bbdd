"""What it takes to drive the page in Chromium: the browser, and node packages beside the build.

Missing says what is not there and where it would come from.
"""
import os
import shutil
import subprocess
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))


class Missing(Exception):
    pass


def chromium():
    found = shutil.which('chromium') or shutil.which('chromium-browser')
    if not found:
        raise Missing('there is no chromium (packages.txt lists it)')
    return found


def packages(build):
    """Where playwright-core and axe-core are: BUILD/web-test; installed when the lock file has changed."""
    folder = os.path.join(build, 'web-test')
    stamp = os.path.join(folder, 'installed')
    with open(os.path.join(ROOT, 'web', 'package-lock.json'), encoding='utf-8') as file:
        lock = file.read()
    if os.path.exists(stamp):
        with open(stamp, encoding='utf-8') as file:
            if file.read() == lock:
                return folder
    if not shutil.which('npm'):
        raise Missing('there is no npm to install playwright-core with (packages.txt lists it)')
    os.makedirs(folder, exist_ok=True)
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(os.path.join(ROOT, 'web', name), folder)
    for attempt in range(3):  # the network is not what is tested
        time.sleep(10 * attempt)
        try:
            done = subprocess.run(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'],
                                  cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=900)
        except subprocess.TimeoutExpired as error:
            raise Missing('npm ci of playwright-core takes more than a quarter of an hour') from error
        if not done.returncode:
            break
    else:
        raise Missing(f'npm ci of playwright-core: {done.stdout[-300:]}')
    with open(stamp, 'w', encoding='utf-8') as file:
        file.write(lock)
    return folder
