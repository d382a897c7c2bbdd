// The live part of a flame graph. Everything it knows is in the attributes of the frames; names are
// read from their titles and only ever written as text.
'use strict';
(function () {
const svg = document.documentElement;
const area = document.getElementById('frames');
const hover = document.getElementById('hover');
const controls = document.getElementById('controls');
const total = Number(svg.dataset.total);
const depth = Number(svg.dataset.depth);
const top = Number(svg.dataset.top);
const row = Number(svg.dataset.row);
const unit = svg.dataset.unit;
const margin = 10;
const character = 7.25;
let inverted = svg.dataset.inverted === '1';
let width = 1180;

const frames = Array.from(area.children, function (group) {
    const words = group.querySelector('title').textContent.split('\n');
    return {group: group, rect: group.querySelector('rect'), text: group.querySelector('text'),
            name: words[0], library: words[1], start: Number(group.dataset.s),
            value: Number(group.dataset.v), depth: Number(group.dataset.d)};
});
let zoomed = frames[0];

function percent(value, of) {
    return (100 * value / of).toFixed(2) + ' %';
}

function fit(text, room) {
    const most = Math.floor(room / character);
    if (most < 3)
        return '';
    return text.length <= most ? text : text.slice(0, most - 2) + '..';
}

function draw() {
    const start = zoomed.start, value = zoomed.value;
    for (const frame of frames) {
        const outer = frame.depth < zoomed.depth;
        const end = frame.start + frame.value;
        const shown = outer ? frame.start <= start && end >= start + value
                            : frame.start >= start && end <= start + value;
        frame.group.style.display = shown ? '' : 'none';
        if (!shown)
            continue;
        const x = outer ? 0 : (frame.start - start) / value;
        const share = outer ? 1 : frame.value / value;
        const y = top + row * (inverted ? frame.depth : depth - frame.depth);
        frame.group.classList.toggle('outer', outer);
        frame.rect.setAttribute('x', x * width);
        frame.rect.setAttribute('width', Math.max(share * width - 0.5, 0.2));
        frame.rect.setAttribute('y', y);
        frame.text.setAttribute('x', x * width + 3);
        frame.text.setAttribute('y', y + 12);
        frame.text.textContent = fit(frame.name, share * width - 6);
    }
    reset.style.display = zoomed === frames[0] ? 'none' : '';
}

function describe(frame) {
    let text = frame.name + (frame.library ? ' (' + frame.library + ')' : '') + ': ' +
        frame.value + ' ' + unit + ', ' + percent(frame.value, total);
    if (zoomed !== frames[0] && frame.value <= zoomed.value)
        text += ', ' + percent(frame.value, zoomed.value) + ' of the view';
    return text;
}

// ---- search ----

function search(expression) {
    let pattern = null;
    matched.textContent = '';
    try {
        pattern = expression ? new RegExp(expression, 'i') : null;
    } catch (error) {
        matched.textContent = 'not a regular expression';
    }
    let sum = 0, covered = 0;
    // Frames come in the order of a walk through the tree: what lies within a match follows it.
    for (const frame of frames) {
        const hit = pattern !== null && (pattern.test(frame.name) || pattern.test(frame.library));
        frame.group.classList.toggle('match', hit);
        if (hit && frame.start >= covered) {
            sum += frame.value;
            covered = frame.start + frame.value;
        }
    }
    if (pattern)
        matched.textContent = 'Matched: ' + percent(sum, total);
    const state = expression ? '#search=' + encodeURIComponent(expression) : location.pathname;
    try {
        history.replaceState(null, '', state);
    } catch (error) {
        // A file opened from disk may not change its address.
    }
}

// ---- controls ----

function element(name, attributes, text) {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key of Object.keys(attributes))
        made.setAttribute(key, attributes[key]);
    if (text)
        made.textContent = text;
    controls.appendChild(made);
    return made;
}

const flip = element('text', {class: 'button', y: 25}, 'Flip');
const reset = element('text', {class: 'button', y: 25}, 'Reset zoom');
const matched = element('text', {id: 'matched', y: 45, 'text-anchor': 'end'});
const holder = element('foreignObject', {y: 8, width: 240, height: 28});
const input = document.createElementNS('http://www.w3.org/1999/xhtml', 'input');
input.setAttribute('placeholder', 'Search (regular expression)');
input.setAttribute('aria-label', 'Search');
holder.appendChild(input);

function place() {
    const page = Math.max(svg.clientWidth || window.innerWidth, 600);
    width = page - 2 * margin;
    area.setAttribute('width', width);
    holder.setAttribute('x', page - margin - 240);
    matched.setAttribute('x', page - margin);
    flip.setAttribute('x', page - margin - 290);
    reset.setAttribute('x', page - margin - 385);
    const title = document.getElementById('title');
    title.textContent = fit(fullTitle, (page - 410) * character / 9.7);
    draw();
}
const fullTitle = document.getElementById('title').textContent;

function frameOf(event) {
    const group = event.target.closest ? event.target.closest('#frames > g') : null;
    return group ? frames.find(function (frame) { return frame.group === group; }) : null;
}

area.addEventListener('click', function (event) {
    const frame = frameOf(event);
    if (frame) {
        zoomed = frame;
        draw();
        hover.textContent = fit(describe(frame), width);
    }
});
area.addEventListener('mouseover', function (event) {
    const frame = frameOf(event);
    hover.textContent = frame ? fit(describe(frame), width) : '';
});
area.addEventListener('mouseleave', function () { hover.textContent = ''; });
reset.addEventListener('click', function () { zoomed = frames[0]; draw(); });
flip.addEventListener('click', function () {
    inverted = !inverted;
    if (zoomed)
        draw();
});
input.addEventListener('input', function () { search(input.value); });
window.addEventListener('keydown', function (event) {
    if ((event.ctrlKey || event.metaKey) && event.key === 'f' || event.key === 'F3') {
        event.preventDefault();
        input.focus();
        input.select();
    } else if (event.key === 'Escape') {
        input.value = '';
        search('');
        zoomed = frames[0];
        if (zoomed)
            draw();
    }
});
svg.setAttribute('width', '100%');
if (frames.length === 0)
    controls.style.display = 'none';
if (frames.length > 0) {
    window.addEventListener('resize', place);
    place();
    const asked = /^#search=(.*)$/.exec(location.hash);
    if (asked) {
        input.value = decodeURIComponent(asked[1]);
        search(input.value);
    }
}
})();
