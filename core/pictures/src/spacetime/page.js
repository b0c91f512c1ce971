"use strict";
// Round 0 is the whole run: nothing is marked, and every round is listed.
const find = (id) => document.getElementById(id);
const slider = find("round");
const picture = find("picture");
const svg = picture.querySelector("svg");
const run = svg.querySelector(".run");
const sections = [...document.querySelectorAll("#rounds section")];
const whole = find("status").textContent;
const last = Number(slider.max);

const cursor = document.createElementNS(svg.namespaceURI, "rect");
cursor.setAttribute("class", "cursor");
const tall = run.getBBox();
cursor.setAttribute("y", tall.y);
cursor.setAttribute("height", tall.height);
cursor.setAttribute("visibility", "hidden");
// Behind the arrows and the bars, which are in groups; before the colors, if there are no arrows.
run.insertBefore(cursor, run.querySelector(".over") ?? run.querySelector("g"));

// How large the picture is: 1 is as it was drawn.
const drawn = { wide: svg.width.baseVal.value, tall: svg.height.baseVal.value };
const names = svg.querySelector(".names");
let zoom = 1;

// The names of the ranks stay where they are, when the rest is moved to the left.
function keep() {
  const left = svg.getBoundingClientRect().left - picture.getBoundingClientRect().left;
  names.setAttribute("transform", `translate(${Math.max(-left, 0) / zoom} 0)`);
}

// What is at that place of the window stays there; the middle, if no place is named.
function resize(to, x, y) {
  const frame = picture.getBoundingClientRect();
  x ??= frame.left + frame.width / 2;
  y ??= frame.top + frame.height / 2;
  const before = svg.getBoundingClientRect();
  const at = { x: (x - before.left) / zoom, y: (y - before.top) / zoom };
  zoom = Math.min(Math.max(to, 0.05), 16);
  svg.style.width = `${drawn.wide * zoom}px`;
  svg.style.height = `${drawn.tall * zoom}px`;
  const after = svg.getBoundingClientRect();
  picture.scrollLeft += after.left + at.x * zoom - x;
  picture.scrollTop += after.top + at.y * zoom - y;
  find("full").textContent = `${Math.round(zoom * 100)} %`;
  keep();
}

const fitting = () => Math.min(picture.clientWidth / drawn.wide, picture.clientHeight / drawn.tall);

function show(round) {
  round = Math.min(Math.max(round, 0), last);
  slider.value = round;
  svg.classList.toggle("stepping", round > 0);
  for (const old of svg.querySelectorAll(".round.now")) old.classList.remove("now");
  for (const now of svg.querySelectorAll(`[data-round="${round}"]`)) now.classList.add("now");
  sections.forEach((section, i) => { section.hidden = round > 0 && i + 1 !== round; });
  find("rounds").scrollTop = 0;
  // Not `disabled`: that would take the focus away from under the reader.
  for (const id of ["first", "back"]) find(id).setAttribute("aria-disabled", round === 0);
  for (const id of ["next", "last"]) find(id).setAttribute("aria-disabled", round === last);
  cursor.setAttribute("visibility", round > 0 ? "visible" : "hidden");
  const says = round > 0 ? sections[round - 1].querySelector("h2").textContent : whole;
  find("status").textContent = find("status").title = says;
  slider.setAttribute("aria-valuetext", says);
  if (round === 0) return;
  const { from, to } = sections[round - 1].dataset;
  cursor.setAttribute("x", from);
  cursor.setAttribute("width", Math.max(to - from, 1));
  const box = cursor.getBoundingClientRect();
  const frame = picture.getBoundingClientRect();
  if (box.left < frame.left || box.right > frame.right) {
    picture.scrollLeft += (box.left + box.right - frame.left - frame.right) / 2;
  }
}

// A pointer on an arrow shows the whole way of its slice.
svg.addEventListener("mouseover", ({ target }) => {
  const slice = [...target.classList].find((name) => /^s\d+$/.test(name));
  for (const arrow of [...svg.getElementsByClassName("way")]) arrow.classList.remove("way");
  if (slice) for (const arrow of svg.getElementsByClassName(slice)) arrow.classList.add("way");
});

picture.addEventListener("scroll", keep);
window.addEventListener("resize", keep);
picture.addEventListener("wheel", (event) => {
  // With a modifier it scrolls, as it does without one elsewhere.
  if (event.shiftKey || event.altKey) return;
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  resize(zoom * Math.exp(-event.deltaY * lines / 500), event.clientX, event.clientY);
}, { passive: false });

let held = null;
picture.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || event.pointerType === "touch") return;
  held = { x: event.clientX + picture.scrollLeft, y: event.clientY + picture.scrollTop };
});
window.addEventListener("pointermove", (event) => {
  if (held === null) return;
  picture.classList.add("dragging");
  picture.scrollLeft = held.x - event.clientX;
  picture.scrollTop = held.y - event.clientY;
});
for (const end of ["pointerup", "pointercancel"]) {
  window.addEventListener(end, () => {
    held = null;
    picture.classList.remove("dragging");
  });
}
const zooms = {
  "+": () => resize(zoom * 1.25),
  "=": () => resize(zoom * 1.25),
  "-": () => resize(zoom / 1.25),
  0: () => resize(fitting()),
  1: () => resize(1),
};
find("in").addEventListener("click", zooms["+"]);
find("out").addEventListener("click", zooms["-"]);
find("fit").addEventListener("click", zooms[0]);
find("full").addEventListener("click", zooms[1]);

const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last };
const step = (by) => show(Number(slider.value) + by);
find("first").addEventListener("click", () => show(0));
find("back").addEventListener("click", () => step(-1));
find("next").addEventListener("click", () => step(1));
find("last").addEventListener("click", () => show(last));
slider.addEventListener("input", () => show(Number(slider.value)));
document.addEventListener("keydown", (event) => {
  const held = event.altKey || event.ctrlKey || event.metaKey;
  if (!held && event.key in zooms) {
    event.preventDefault();
    zooms[event.key]();
    return;
  }
  const plain = !held && !event.shiftKey;
  // The slider has keys of its own.
  if (!plain || event.target === slider || !(event.key in steps)) return;
  event.preventDefault();
  step(steps[event.key]);
});
find("controls").hidden = false;
// All of it, unless that would be too small to read.
resize(Math.max(Math.min(fitting(), 1), 0.7));
picture.scrollTo(0, 0);
show(0);
