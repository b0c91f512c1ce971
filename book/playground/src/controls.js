// @ts-check
// The controls of a bench: rank count, topology and buttons.
import { button, element, unique } from "./dom.js";

/**
 * Makes the controls.
 * @param {import("./calls.js").Program} program
 * @param {{ changed: () => void, actions: [string, () => void][] }} options `changed` is called after each change of a
 *     field; an action is the text of a button and its effect.
 */
export function controls(program, { changed, actions }) {
    let given = program;
    const single = () => /^\d+$/.test(given.nranks);
    const ranksName = unique("ranks");
    const ranks = element("input", {
        id: ranksName,
        type: "number",
        min: 2,
        max: 64,
        class: "coll-input coll-ranks",
        title: "Rank count, 2 to 64. An empty field checks the counts of the command.",
        input: changed,
    });
    const topologyName = unique("topology");
    const topology = element("input", {
        id: topologyName,
        type: "text",
        class: "coll-input coll-topology-text",
        spellcheck: "false",
        autocomplete: "off",
        placeholder: "full_mesh(8, 25GB/s, 2us) without (0, 1)",
        input: changed,
    });
    const machine = element(
        "details",
        { class: "coll-topology" },
        element("summary", {}, "Topology"),
        element("label", { for: topologyName }, "Topology of the machine, as the command takes it"),
        topology,
    );
    const row = element(
        "div",
        { class: "coll-controls" },
        element("label", { for: ranksName }, "Ranks"),
        ranks,
        ...actions.map(([text, act]) => button(text, act)),
    );

    /** Puts the flags of the program into the fields. */
    function reset() {
        ranks.value = single() ? given.nranks : "";
        ranks.placeholder = single() || !given.nranks ? "all" : given.nranks;
        topology.value = given.topology;
        machine.open = given.topology !== "";
    }

    reset();
    return {
        row,
        machine,
        ranks,
        reset,
        /** Takes the flags of another program. */
        set(next) {
            given = next;
            reset();
        },
        /** The rank counts: the field, or the range that the page's command has. */
        get nranks() {
            const range = single() ? "" : given.nranks;
            return ranks.value ? String(Number(ranks.value)) : range;
        },
        get topology() {
            return topology.value.trim();
        },
        /** Whether the field of ranks holds a number that is out of its range. */
        get wrong() {
            return !ranks.checkValidity();
        },
    };
}
