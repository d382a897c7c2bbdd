"""Reads a log of memcheck, text or XML, into paragraphs that two tools can be compared by.

A paragraph is what stands between two empty lines: a list of texts and stacks. What may differ
between two correct tools is taken out: process numbers, addresses above the first pages, where
replaced functions (allocator, strings) live and by which of their many names they are called, and
by which system call threads are made.
"""
import os
import re
import xml.etree.ElementTree

PREFIX = re.compile(r'^(==|--|\*\*)(?:\d\d:\d\d:\d\d:\d\d\.\d{3} )?(\d+)\1 ?(.*)$')
FRAME = re.compile(r'^   (at|by) 0x([0-9A-F]+): (.*)$')
PLACE = re.compile(r'^(.*) \(([^()]*|\?\?\?)\)$')

ALLOCATORS = {
    'malloc', 'calloc', 'realloc', 'free', 'cfree', 'memalign', 'posix_memalign', 'aligned_alloc',
    'valloc', 'pvalloc', 'reallocarray', 'malloc_usable_size'}
STRINGS = {
    'strlen', 'strnlen', 'strcpy', 'strncpy', 'stpcpy', 'stpncpy', 'strcat', 'strncat', 'strlcpy',
    'strlcat', 'strcmp', 'strncmp', 'strcasecmp', 'strncasecmp', 'strcasecmp_l', 'strncasecmp_l',
    'strchr', 'strrchr', 'strchrnul', 'index', 'rindex', 'strstr', 'strcasestr', 'strpbrk',
    'strspn', 'strcspn', 'memcpy', 'mempcpy', 'memmove', 'memset', 'memcmp', 'bcmp', 'memchr',
    'memrchr', 'rawmemchr', 'memccpy', 'bcopy', 'bzero', 'memcpy_chk', 'memmove_chk', 'memset_chk',
    'mempcpy_chk', 'strcpy_chk', 'strncpy_chk', 'strcat_chk', 'strncat_chk', 'stpcpy_chk', 'wcslen',
    'wcsnlen', 'wcscpy', 'wcsncpy', 'wcscat', 'wcscmp', 'wcsncmp', 'wcschr', 'wcsrchr', 'wmemset',
    'wmemchr', 'wmemcmp', 'wcpncpy', 'setenv', 'putenv', 'unsetenv'}
VARIANT = re.compile(r'(_(sse2|sse3|ssse3|sse4_1|sse42|avx2|avx|evex|evex512|avx512|erms|unaligned|'
                     r'rtm|no_vzeroupper|back|generic|ifunc))+$')


# Valgrind knows one name for functions that share their code.
SAME = {'memmove': 'memcpy', 'index': 'strchr', 'rindex': 'strrchr', 'bcmp': 'memcmp',
        'bzero': 'memset'}


def plain_name(function):
    """One name for the variants of a C function that a library has for different processors."""
    name = re.sub(r'@+GLIBC.*$', '', function)
    name = re.sub(r'^__(GI_+)?', '', name)
    name = VARIANT.sub('', name)
    return SAME.get(name, name)


def is_operator(function):
    return re.match(r'operator (new|delete)\b|_Z(n[wa]|d[la])[a-zA-Z]', function) is not None


def frame(function, place):
    """(function, place); replaced functions have no place."""
    outside = not re.search(r'\.(rs|cc?|h|S):\d+$', place) or re.match(
        r'(.*/)?(vg_replace_|malloc\.c:|reallocarray\.c:|'
        r'.*-(avx|avx2|evex|sse|sse2|vec)[\w-]*\.S:|(str|mem|wc|wm|bz)\w*\.c:|'
        r'new_op|del_op)', place)
    # Valgrind's kernel knows no clone3.
    if function in ('clone', 'clone3') and place.startswith('clone'):
        return 'clone', 'of a thread'
    if outside:
        if plain_name(function) in ALLOCATORS | STRINGS:
            return plain_name(function), 'replaced'
        if is_operator(function):
            return function, 'replaced'
    # Rust's own sources are named with or without their folders.
    return function, os.path.basename(place) if place.startswith('library/') else place


def without_helpers(stack):
    """Valgrind's posix_memalign calls its memalign."""
    return [frame for number, frame in enumerate(stack)
            if not (frame == ('memalign', 'replaced') and number + 1 < len(stack)
                    and stack[number + 1] == ('posix_memalign', 'replaced'))]


def parse_frame(text):
    match = PLACE.match(text)
    if not match:
        return frame(text, '')
    place = match[2]
    if place.startswith('in '):
        place = 'in ' + os.path.basename(place[3:])
    return frame(match[1], place)


def plain_address(match):
    value = int(match[0], 16)
    return match[0] if value < 0x10000 else '0x...'


def plain_text(text):
    return re.sub(r'0x[0-9a-fA-F]+', plain_address, text)


def is_banner(paragraph):
    return any(isinstance(item, str) and item.startswith('Command: ') for item in paragraph)


class Process:
    """What was said of one process: paragraphs, each a tuple of texts and stacks (tuples)."""

    def __init__(self):
        self.lines = []

    def paragraphs(self):
        found, current, stack = [], [], []

        def end_stack():
            if stack:
                current.append(tuple(without_helpers(stack)))
                stack.clear()

        def end_paragraph():
            end_stack()
            if current:
                found.append(tuple(current))
                current.clear()
        for line in self.lines:
            match = FRAME.match(line)
            if match:
                if match[1] == 'at':
                    end_stack()
                stack.append(parse_frame(match[3]))
            elif not line.strip():
                end_paragraph()
            else:
                end_stack()
                current.append(plain_text(line))
        end_paragraph()
        return [paragraph for paragraph in found if not is_banner(paragraph)]


def processes(text):
    """Of each process in the log, in the order in which they appear: its paragraphs."""
    found = {}
    for line in text.splitlines():
        match = PREFIX.match(line)
        if match and match[1] != '--':
            found.setdefault(match[2], Process()).lines.append(match[3])
    return [process.paragraphs() for process in found.values()]


def suppressions(text):
    """The generated suppressions in a log."""
    return re.findall(r'^\{\n(?:   .*\n)+\}\n', text, re.M)


def used_suppressions(text):
    """[(count, name, what was suppressed)]"""
    return [(int(count), name, rest.strip()) for count, name, rest in re.findall(
        r'^--\d+-- used_suppression: +(\d+) (\S+) \S+:\d+(.*)$', text, re.M)]


def is_report(paragraph):
    """Whether this is an error or a loss record, not a line of a summary."""
    return (any(isinstance(item, tuple) for item in paragraph)
            and not any(isinstance(item, str) and item.startswith('Process terminating')
                        for item in paragraph))


def in_string_function(paragraph):
    """Whether a replaced function of strings or memory did it."""
    stack = next((item for item in paragraph if isinstance(item, tuple)), None)
    return stack is not None and stack[0][1] == 'replaced' and stack[0][0] in STRINGS


def without_list(paragraphs):
    """(what comes before ERROR SUMMARY, what follows: the list that -s prints)"""
    for number, paragraph in enumerate(paragraphs):
        for item in paragraph:
            if isinstance(item, str) and item.startswith('ERROR SUMMARY'):
                return paragraphs[:number + 1], paragraphs[number + 1:]
    return paragraphs, []


def frames_of(paragraph):
    for item in paragraph:
        if isinstance(item, tuple):
            yield from item


def show(paragraph):
    """A paragraph as one line."""
    words = []
    for item in paragraph:
        if isinstance(item, tuple):
            frames = ' < '.join(f'{function} ({place})' for function, place in item)
            words.append(f'[{frames}]')
        else:
            words.append(item)
    return ' / '.join(words)


# ---- XML ----

SKIPPED = {'pid', 'ppid', 'time', 'unique', 'ip', 'preamble', 'args', 'dir', 'protocolversion',
           'usercomment', 'rawtext'}


def xml_frame(element):
    function, file = element.findtext('fn', '???'), element.findtext('file')
    if file:
        return frame(function, f'{os.path.basename(file)}:{element.findtext("line", "0")}')
    return frame(function, 'in ' + os.path.basename(element.findtext('obj', '???')))


def xml_item(element):
    if element.tag == 'stack':
        return tuple(xml_frame(child) for child in element.findall('frame'))
    if element.tag == 'sframe':
        return 'sframe', ' '.join(f'{child.tag}:{os.path.basename(child.text or "")}'
                                  for child in element)
    children = [xml_item(child) for child in element if child.tag not in SKIPPED]
    if len(element):
        return element.tag, *children
    return element.tag, plain_text(element.text or '')


def flatten(item):
    for part in item[1:]:
        if isinstance(part, tuple) and part and isinstance(part[0], tuple):
            yield part
        elif isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], str):
            yield f'{part[0]}={part[1]}'
        elif isinstance(part, tuple) and part:
            yield f'{part[0]}:'
            yield from flatten(part)


def xml_paragraphs(text):
    """One paragraph for each element below the root."""
    root = xml.etree.ElementTree.fromstring(text)
    found = [('root', f'{child.tag}={child.text}') for child in root
             if child.tag in ('protocolversion', 'protocoltool', 'tool')]
    for child in root:
        if child.tag in SKIPPED or child.tag in ('protocoltool', 'tool'):
            continue
        found.append((child.tag, *flatten(xml_item(child))))
    return found
