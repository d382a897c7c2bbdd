"""Stacks through everything."""
import subprocess

import suite
from suite import contains, equal, failed, test
from support import TARGETS, at_least, build, cpu_time, flame, near


@test
def threads_that_wait_for_each_other():
    """Tens of thousands of times in a second or two: whichever clock samples them."""
    for sampler in ('perf', 'timers'):
        profile = flame(build('switching'), f'--sampler={sampler}')
        small, large = profile.share('small_work'), profile.share('large_work')
        near(large / (small + large), 2 / 3, 0.12, f'the larger part by {sampler}')
        cpu_time(profile.total, float(profile.out), f'all by {sampler}', most=1.2)
        at_least(profile.complete(), 98, 'complete stacks')


@test
def what_comes_after_many_switches_is_known():
    """News of the target, and of nobody else, while others execute programs all the time."""
    with open('plugin.c', 'w') as file:
        file.write('#include "work.h"\nvoid plugged(void) {turn(400000000); sink++;}')
    subprocess.run(['gcc', '-O2', '-g', '-w', '-I', TARGETS, '-shared', '-fPIC', 'plugin.c', '-o',
                    'plugin.so'], check=True)
    program = build('handed')
    others = subprocess.Popen(['sh', '-c', f'while :; do {program} executed; done'])
    try:
        profile = flame(program, '--trace-children=yes', arguments=['./plugin.so'])
    finally:
        others.kill()
        others.wait()
    equal({path[0] for path in profile.stacks if path[0] != '[kernel]'}, {'handed'}, 'programs')
    at_least(profile.share('handed', 'main', 'plugged') * profile.total, 50, 'plugged')
    for name in ('thread_work', 'forked_work', 'executed_work'):
        cpu_time(profile.share(name) * profile.total, 0.4, name, most=1.2)
    equal(profile.share('handed', 'main', 'executed_work'), profile.share('executed_work'))


@test
def recursion_is_complete():
    profile = flame(build('deep', '-fno-optimize-sibling-calls', '-fomit-frame-pointer'))
    deepest = max(profile.stacks, key=profile.stacks.get)
    equal(deepest.count('descend'), 201, 'frames of descend')
    equal(deepest[0], 'main')
    at_least(profile.complete(), 99, 'complete stacks')


@test
def recursion_beyond_the_copy_is_said():
    program = build('deep', '-fno-optimize-sibling-calls')
    profile = flame(program, '--stack-bytes=4096', arguments=['3000'])
    at_least(profile.share('[cut short]', 'descend'), 0.95, 'share cut short')
    at_least(5, profile.complete(), 'complete stacks')
    contains(profile.log, '%: stack larger than --stack-bytes')


@test
def library_calls_back():
    profile = flame(build('through'), arguments=['sort'])
    at_least(profile.share('compare'), 0.9, 'compare')
    at_least(sum(value for path, value in profile.stacks.items()
                 if path[0] == 'main' and 'compare' in path) / profile.total, 0.9, 'below main')


@test
def signal_handlers_are_walked_through():
    profile = flame(build('through'), arguments=['signal'])
    inside = [path for path in profile.stacks if 'handler' in path]
    at_least(profile.share('handler'), 0.9, 'handler')
    for path in inside:
        equal(path[0], 'main')
        if not any('raise' in name or 'kill' in name for name in path):
            failed(f'no raise in {path}')


@test
def inlined_calls_are_frames():
    profile = flame(build('through'), arguments=['inlined'])
    at_least(profile.share('main', 'holder', 'inlined_outer', 'inlined_inner', 'turn'), 0.9, 'turn')
    plain = flame(build('through'), '--read-inline-info=no', arguments=['inlined'])
    at_least(plain.share('main', 'holder'), 0.9, 'holder')
    equal(plain.share('inlined_outer'), 0, 'inlined functions unasked')


@test
def functions_left_by_jumps_are_frames():
    program = build('tails', '-Wl,--no-relax')
    for sampler in ('perf', 'timers'):
        profile = flame(program, f'--sampler={sampler}')
        # Which function entered jumps to in the end is seen, what is between the two is not.
        at_least(profile.share('main', 'entered', 'last', 'turn'), 0.15, f'entered, {sampler}')
        at_least(profile.share('main', 'outside', 'last', 'turn'), 0.15, f'outside, {sampler}')
        at_least(profile.share('main', 'outer_thunk', 'thunk', 'last', 'turn'), 0.15,
                 f'thunks, {sampler}')
        at_least(profile.share('main', 'parted', '[tails]', 'last', 'turn'), 0.15,
                 f'parted, {sampler}')
        equal(profile.share('main', 'last'), 0, 'calls of last by main')
    profile = flame(program, arguments=['pointer'])
    at_least(profile.share('main', 'last', 'turn'), 0.25, 'what was called by a pointer')


@test
def vdso_is_walked_through():
    profile = flame(build('through'), arguments=['time'])
    at_least(profile.share('main', 'ask_time'), 0.95, 'ask_time')
    at_least(profile.share('[vdso]'), 0.3, 'the vdso')


@test
def kernel_time_belongs_to_the_caller():
    profile = flame(build('through'), arguments=['kernel'])
    if 'Time in the kernel is not sampled' in profile.log:
        return
    at_least(profile.share('main', 'ask_kernel', 'getppid'), 0.6, 'getppid')


@test
def cxx_names():
    profile = flame(build('names'))
    names = {name for path in profile.stacks for name in path}
    wanted = [name for name in names
              if name.startswith('space::Holder<unsigned int>::grind(std::')]
    equal(len(wanted), 1, f'names of grind among {names}')
    mangled = flame(build('names'), '--demangle=no')
    at_least(mangled.share('main'), 0.9, 'main')
    if not any(name.startswith('_ZN5space6Holder') for path in mangled.stacks for name in path):
        failed('no mangled name')


@test
def rust_names():
    suite.need('rustc')
    profile = flame(build('rust'))
    at_least(profile.complete(), 95, 'complete stacks')
    if not any('grind' in name and not name.startswith('_') for path in profile.stacks
               for name in path):
        failed(f'no grind in {list(profile.stacks)[:3]}')


@test
def hostile_names_are_text():
    profile = flame(build('hostile'))
    at_least(profile.share('main', '<img src=x onerror=alert(1)>'), 0.4, 'the image')
    at_least(profile.share('main', "a:b]]>&amp:'</script>"), 0.4, 'the script')
    with open('out.svg', encoding='utf-8') as file:
        text = file.read()
    equal(text.count('<script>'), 1, 'scripts')
    equal(text.count('<img'), 0, 'images')
    contains(text, '&lt;img src=x onerror=alert(1)&gt;')
    names = {frame['name'] for frame in profile.frames}
    equal("a;b]]>&amp;'</script>" in names, True, 'the second name as it is')
