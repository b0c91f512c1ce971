// @ts-check
// A row of tabs and the panel below it.
import { element, unique } from "./dom.js";

/**
 * Makes a row of tabs. `show(name)` fills the panel of a tab when the reader selects it.
 * @param {string[]} names
 * @param {(name: string) => void} show
 */
export function tabs(names, show) {
    const panelName = unique("panel");
    const all = names.map((name, i) =>
        element(
            "button",
            {
                type: "button",
                role: "tab",
                class: "coll-tab",
                id: unique("tab"),
                "aria-controls": panelName,
                tabindex: i === 0 ? 0 : -1,
                click: () => select(name),
                keydown: (event) => move(event, i),
            },
            name,
        ),
    );
    for (const tab of all) tab.setAttribute("aria-selected", String(tab === all[0]));
    const row = element("div", { role: "tablist", class: "coll-tabs", "aria-label": "Results" }, ...all);
    const panel = element("div", {
        role: "tabpanel",
        class: "coll-panel",
        id: panelName,
        tabindex: 0,
        "aria-labelledby": all[0].id,
    });
    let selected = names[0];

    /** @param {string} name */
    function select(name) {
        selected = name;
        all.forEach((tab, i) => {
            tab.setAttribute("aria-selected", String(names[i] === name));
            tab.tabIndex = names[i] === name ? 0 : -1;
        });
        panel.setAttribute("aria-labelledby", all[names.indexOf(name)].id);
        show(name);
    }

    function move(event, i) {
        const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: names.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = (to + names.length) % names.length;
        select(names[next]);
        all[next].focus();
    }

    return {
        row,
        panel,
        select,
        get selected() {
            return selected;
        },
    };
}
