// @ts-check
// An exercise: a bench that begins with a program of the chapter, and the list of the asks below it.
import exercises from "../exercises.json";
import { holds, words } from "./asks.js";
import { bench } from "./bench.js";
import { Superseded } from "./commands.js";
import { element } from "./dom.js";
import { baseName, folderOf } from "./paths.js";

/** Returns an algorithm with nothing in it. */
function skeleton({ algorithm, collective, parameters, uses = [] }) {
    const used = uses.map((file) => `use "${file}";\n\n`).join("");
    return `${used}algorithm ${algorithm}(${parameters}) -> ${collective} {\n    // Write the program of one rank here.\n}\n`;
}

/** Returns the program with which an exercise begins. */
async function beginning(exercise, root) {
    const [path, text] = exercise.start
        ? [exercise.start, await (await fetch(new URL(exercise.start, root))).text()]
        : [exercise.solution, skeleton(exercise.skeleton)];
    return { text, name: baseName(path), folder: folderOf(path), nranks: "", topology: "", rest: [] };
}

/**
 * Opens an exercise in `place`; `button` goes, and is back when the reader closes the exercise.
 * @param {string} page
 * @param {string} slug
 * @param {HTMLElement} place
 * @param {URL} root
 * @param {HTMLButtonElement} button
 */
export async function attempt(page, slug, place, root, button) {
    const exercise = /** @type {any} */ (exercises.exercises.find((one) => one.page === page && one.slug === slug));
    const program = await beginning(exercise, root);
    const items = exercise.asks.map((ask) => element("li", { "data-holds": "no" }, words(ask)));
    const verdict = element("p", { class: "coll-solved", role: "status", "aria-live": "polite" });
    const list = element(
        "div",
        { class: "coll-asks" },
        element("p", {}, "Solved when all of these hold:"),
        element("ul", {}, ...items),
        verdict,
    );

    async function judge(made) {
        try {
            let solved = true;
            for (const [i, ask] of exercise.asks.entries()) {
                const held = await holds(ask, made);
                items[i].dataset.holds = held ? "yes" : "no";
                solved &&= held;
            }
            list.dataset.solved = solved ? "yes" : "no";
            verdict.textContent = solved ? "solved" : "not solved yet";
        } catch (error) {
            if (!(error instanceof Superseded)) verdict.textContent = `not judged: ${error}`;
        }
    }

    button.hidden = true;
    const made = bench(place, program, root, {
        close() {
            made.end();
            list.remove();
            button.hidden = false;
            button.focus();
        },
        checked: judge,
    });
    place.append(list);
    made.focus();
}
