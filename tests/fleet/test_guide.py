"""docs/fleet.md and examples/fleet: the files are valid, name options and metrics that there are, and
their statements run."""
import glob
import json
import os
import re

import suite
from stores import Postgres
from support import Server, get, settled
from suite import QUERN, ROOT, equal, failed, need, run, succeed, test

FOLDER = os.path.join(ROOT, 'examples', 'fleet')


def text_of(path):
    with open(path) as file:
        return file.read()


def guide():
    return text_of(os.path.join(ROOT, 'docs', 'fleet.md'))


@test
def options_are_there():
    texts = [guide()] + [text_of(path) for path in glob.glob(FOLDER + '/*')]
    help_text = ''.join(succeed([QUERN, *words])[0] for words in (
        ['--help-all'], ['heap', '--help-all'], ['query', '--help'], ['diff', '--help'],
        ['push', '--help']))
    known = set(re.findall(r'--[a-z][a-z-]+', help_text))
    used = {option for text in texts
            for option in re.findall(r'(?<![\w-])--(?:push|metrics|service|store|heap|max|credentials'
                                     r'|before|after)[a-z-]*', text)}
    equal(sorted(used - known), [], 'unknown options')
    if len(used) < 10:
        failed(f'only {used}')


@test
def metrics_are_there():
    with Server('--metrics-port=0', '--push=clickhouse://127.0.0.1:1', '--push-spool=spool') as server:
        server.tell('h 1 1')
        settled(server, 'quern_heap_live_blocks', 1)
        names = set(re.findall(r'^# TYPE (\w+)', get(server.url + '/metrics')[1], re.M))
    for path in [os.path.join(FOLDER, 'grafana-prometheus.json'), os.path.join(ROOT, 'docs/fleet.md')]:
        used = set(re.findall(r'\bquern_[a-z_]+', text_of(path)))
        equal(sorted(used - names), [], f'unknown metrics in {os.path.basename(path)}')
    documented = set(re.findall(r'\bquern_[a-z_]+', guide()))
    equal(sorted(names - documented), [], 'metrics that the guide does not name')


@test
def the_unit_is_valid():
    need('systemd-analyze')
    path = os.path.join(FOLDER, 'quern-server.service')
    _, _, err = run(['systemd-analyze', 'verify', path])
    # The programs are not installed here.
    wrong = [line for line in err.splitlines() if 'quern-server.service' in line and
             'is not executable' not in line]
    equal(wrong, [], 'problems')


@test
def manifests_are_valid():
    need('ruby')
    script = '''
require "yaml"
YAML.load_stream(File.read(ARGV[0])).each do |one|
  puts [one.fetch("apiVersion"), one.fetch("kind"), one.fetch("metadata").fetch("name")].join(" ")
  next unless one["kind"] == "Deployment"
  spec = one["spec"]["template"]["spec"]
  volumes = spec["volumes"].map { |volume| volume["name"] }
  (spec["containers"] + spec["initContainers"]).each do |container|
    container["volumeMounts"].each { |mount| volumes.include?(mount["name"]) or raise mount["name"] }
  end
  one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"] or raise "labels"
end
'''
    out, _ = succeed(['ruby', '-e', script, os.path.join(FOLDER, 'kubernetes.yaml')])
    equal(out.splitlines(), ['v1 Secret quern-push', 'apps/v1 Deployment server',
                             'networking.k8s.io/v1 NetworkPolicy server-metrics'], 'manifests')


def panels(name):
    board = json.loads(text_of(os.path.join(FOLDER, name)))
    equal(len({panel['id'] for panel in board['panels']}), len(board['panels']), 'different ids')
    names = {variable['name'] for variable in board['templating']['list']}
    for panel in board['panels']:
        equal(panel['datasource']['uid'].strip('${}') in names, True, panel['title'])
    return board['panels']


@test
def the_board_for_prometheus_has_valid_queries():
    need('promtool')
    rules = [{'record': f'panel:{panel["id"]}:{target["refId"]}',
              'expr': target['expr'].replace('$service', '.*')}
             for panel in panels('grafana-prometheus.json') for target in panel['targets']]
    path = suite.write('rules.yml', json.dumps({'groups': [{'name': 'board', 'rules': rules}]}))
    succeed(['promtool', 'check', 'rules', path])


@test
def the_board_and_the_guide_have_statements_that_run():
    def plain(sql):
        sql = re.sub(r'\$__timeGroup\((\w+), \$__interval\)', r"date_trunc('minute', \1)", sql)
        return re.sub(r'\$__timeFilter\((\w+)\)', r"\1 > now() - interval '1 hour'", sql) \
            .replace('$service', "'server'")
    with Postgres() as store:
        with Server(f'--push={store.url}', '--push-interval=1', '--push-spool=spool',
                    '--metrics-port=0') as server:
            server.tell('h 10 100')
            found = settled(server, 'quern_heap_live_blocks', 10)
            settled(server, 'quern_push_pushed_total', found['quern_push_intervals_total'] + 2)
            for panel in panels('grafana-postgresql.json'):
                for target in panel['targets']:
                    if not store.rows(plain(target['rawSql'])):
                        failed(f'{panel["title"]} is empty')
            statements = re.findall(r'```sql\n(.+?)```', guide(), re.S)
            for sql in statements:
                if not store.rows(sql):
                    failed(f'no rows for {sql}')
            if len(statements) < 3:
                failed('the guide has too few statements')
