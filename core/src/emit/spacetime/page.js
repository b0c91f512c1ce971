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
// Behind the arrows and the bars, which are in groups.
run.insertBefore(cursor, run.querySelector("g"));

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

// The names of the ranks stay where they are.
const names = svg.querySelector(".names");
picture.addEventListener("scroll", () => {
  names.setAttribute("transform", `translate(${picture.scrollLeft} 0)`);
});

const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last };
const step = (by) => show(Number(slider.value) + by);
find("first").addEventListener("click", () => show(0));
find("back").addEventListener("click", () => step(-1));
find("next").addEventListener("click", () => step(1));
find("last").addEventListener("click", () => show(last));
slider.addEventListener("input", () => show(Number(slider.value)));
document.addEventListener("keydown", (event) => {
  const plain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  // The slider has keys of its own.
  if (!plain || event.target === slider || !(event.key in steps)) return;
  event.preventDefault();
  step(steps[event.key]);
});
find("controls").hidden = false;
show(0);
