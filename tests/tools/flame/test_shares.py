"""Shares of functions, by sample counts."""
import re

from suite import contains, test
from support import at_least, build, cpu_time, flame, near


@test
def shares_of_three_functions():
    # Without interrupts, turn calls nothing.
    profile = flame(build('shares'), '--kernel-stacks=no', arguments=['6000'], status=7)
    cpu_time(profile.total, float(profile.out), 'all')
    # Four standard deviations of a thousand samples, and a little for the machine.
    near(profile.share('main', 'seventy'), 0.70, 0.07, 'seventy')
    near(profile.share('main', 'twenty'), 0.20, 0.06, 'twenty')
    near(profile.share('main', 'ten'), 0.10, 0.05, 'ten')
    at_least(profile.complete(), 99, 'complete stacks')
    contains(profile.log, ' samples at 997 Hz, ')
    contains(profile.log, '; 0 lost')
    match = re.search(r'([\d.]+) %  +([\d.]+) %  turn \(shares\)', profile.log)
    for value in match.groups():
        near(float(value) / 100, profile.share('turn'), 0.001, 'turn in the log')


@test
def frequency_decides_the_samples():
    program = build('shares')
    # Enough samples of each: every processor that the program comes to may keep one back.
    for frequency, rounds in ((100, 6000), (997, 1500), (3000, 1500)):
        profile = flame(program, f'--freq={frequency}', arguments=[str(rounds)], status=7)
        cpu_time(profile.total, float(profile.out), f'all at {frequency} Hz', frequency)


@test
def threads_are_sampled_alike():
    profile = flame(build('threads'))
    took = {name: float(value) for name, value in map(str.split, profile.out.splitlines())}
    for name in ('left', 'right'):
        near(profile.share('run_' + name, name), profile.share(name), 0.02, name)
        cpu_time(profile.share(name) * profile.total, took[name], name)
    at_least(profile.complete(), 99, 'complete stacks')
