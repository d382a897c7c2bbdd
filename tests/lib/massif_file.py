"""Reads massif.out files."""
import re

from suite import equal


def snapshots(text, change=lambda line: line):
    """The snapshots as dictionaries. 'tree' holds the lines of the tree, each changed by `change`."""
    result = []
    for line in text.splitlines()[3:]:
        if line.startswith('snapshot='):
            result.append({'tree': []})
        elif re.match(r' *n\d+: ', line):
            result[-1]['tree'].append(change(line))
        elif not line.startswith('#'):
            name, value = line.split('=')
            result[-1][name] = int(value) if value.isdigit() else value
    return result


def the_peak(shots):
    """The one snapshot that is the peak."""
    peaks = [one for one in shots if one['heap_tree'] == 'peak']
    equal(len(peaks), 1, 'number of peaks')
    return peaks[0]


def without_library(line):
    """A line without the address of a library, which differs from run to run."""
    return re.sub(r'0x(?=[0-9A-F]{7,}:)[0-9A-F]+', '0xLIBRARY', line)
