"""Every place that speaks about growth must say the same of the same recording."""
import json
import os
import re

from suite import QUERN, contains, equal, run, succeed
from verdicts import RATE, growth_of


def number(text):
    return int(text.replace(',', ''))


def in_sarif(path):
    """Message, file and line of each result that is a verdict of growth."""
    with open(path) as file:
        results = json.load(file)['runs'][0]['results']
    found = []
    for result in results:
        if not RATE.search(result['message']['text']):
            continue
        place = result['locations'][0]['physicalLocation'] if result.get('locations') else {}
        uri = place.get('artifactLocation', {}).get('uri', '')
        found.append((result['message']['text'], os.path.basename(uri), place.get('region', {}).get('startLine')))
    return found


def compare_views(path):
    """diagnose, check, the growth view, the page and SARIF have one opinion."""
    said = growth_of(succeed([QUERN, 'diagnose', path])[0])
    view = succeed([QUERN, 'print', '--view=growth', path])[0]
    equal(growth_of(view), said, 'print --view=growth')
    contains(view, f' s: {len(said)}\n')
    status, out, _ = run([QUERN, 'check', '--max-growth=0', '--sarif-file=growth.sarif', path])
    equal(status, 3 if said else 0, 'status of check')
    equal(growth_of(out), said, 'check')
    per_minute = number(re.search(r'grows by ([\d,]+) bytes a minute', out)[1])
    rates = [number(RATE.search(text)[1]) for _, _, text in said]
    equal(per_minute // 60 in range(sum(rates) - len(rates), sum(rates) + len(rates) + 1), True,
          f'{per_minute} bytes a minute, of {rates} a second:')
    sarif = in_sarif('growth.sarif')
    equal([message.split(':')[0] for message, _, _ in sarif], [title for title, _, _ in said], 'SARIF')
    rows = [row for row in json.loads(succeed([QUERN, 'print', '--json', '--view=diagnosis', path])[0])['rows']
            if RATE.search(row['evidence'])]
    equal([(row['title'], row.get('place')) for row in rows], [(title, place) for title, place, _ in said], 'the page')
    for (_, file, line), (_, place, _) in zip(sarif, said):
        if place and (where := re.search(r'\(([^()]*):(\d+)\)$', place)):
            equal((file, line), (where[1], int(where[2])), 'place in SARIF')
