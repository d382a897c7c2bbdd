"""Runs a case of the corpus under one of the tools."""
import os
import resource
import shutil
import subprocess
import tempfile

import compare
import logs
from suite import QUERN

SECONDS = 600


class Refused(Exception):
    """Quern wrote no log."""


def is_valgrind(tool):
    return os.path.basename(shutil.which(tool) or tool) == 'valgrind'


def run_tool(tool, program, options, case, log_option='--log-file'):
    """An Outcome of one run in an empty folder."""
    with tempfile.TemporaryDirectory(prefix='quern-test-') as folder:
        log_path = os.path.join(folder, 'tool.log')
        environment = {'PATH': os.environ['PATH'], 'HOME': folder, 'LC_ALL': 'C', 'TMPDIR': folder,
                       **case.environment}
        is_xml = log_option == '--xml-file'
        words = [tool, '--tool=memcheck', f'{log_option}={log_path}', *options, program,
                 *case.arguments]
        output_path = os.path.join(folder, 'output')
        os.mkdir(os.path.join(folder, 'here'))
        with open(output_path, 'wb') as output:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                cwd=os.path.join(folder, 'here'), env=environment, start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                raise RuntimeError(f'{os.path.basename(tool)} took more than {SECONDS} s')
        with open(output_path, errors='replace') as file:
            printed = ''.join(line for line in file if not logs.PREFIX.match(line))
        try:
            with open(log_path, errors='replace') as file:
                log = file.read()
        except OSError:
            kind = Refused if tool == QUERN else RuntimeError
            raise kind(f'{os.path.basename(tool)} wrote no log: {printed[-300:]}')
    return compare.Outcome(status, printed, log, is_xml)
