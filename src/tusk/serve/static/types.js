// The view of types: a card for each, with what is done to it.
import { chip, make, post, say, told } from "./api.js";
import { onChange, setTypes, state } from "./state.js";

const by = id => document.getElementById(id);
const FEW = 12; // types that are all shown, found or not
const chosen = new Set();

export function startTypes() {
  by("merge").addEventListener("click", told(merge));
  for (const id of ["undo", "redo"]) {
    by(id).addEventListener("click", told(async () => {
      const words = state.types[id];
      await setTypes(await post(`/api/names/${id}`));
      say(`${id === "undo" ? "Undone" : "Done again"}: ${words}.`);
    }));
  }
  onChange(draw);
}

const change = (path, body, words) => told(async () => {
  await setTypes(await post(`/api/names/${path}`, body));
  say(words);
});

async function merge() {
  const living = state.types.types.filter(one => chosen.has(one.number));
  const into = living.find(one => one.name) ?? living[0];
  let types = null;
  for (const other of living.filter(one => one !== into)) {
    types = await post("/api/names/merge", { into: into.number, other: other.number });
  }
  chosen.clear();
  await setTypes(types);
  say(`Merged into ${into.title}.`);
}

function draw() {
  const { types } = state;
  if (types === null) return;
  by("undo").disabled = types.undo === null;
  by("undo").title = types.undo ?? "";
  by("redo").disabled = types.redo === null;
  by("redo").title = types.redo ?? "";
  for (const number of [...chosen]) if (!types.types.some(one => one.number === number)) chosen.delete(number);
  by("merge").disabled = chosen.size < 2;
  by("types-words").textContent = `${types.types.length} types, in the ${types.looked_at} of ${types.pictures} pictures `
    + "that were looked at. Choose two or more to merge them.";
  const focused = document.activeElement?.id;
  const isUsed = one => one.count > 0 || one.name || one.hidden || types.types.length <= FEW;
  by("cards").replaceChildren(...types.types.filter(isUsed).map(card));
  const unused = types.types.filter(one => !isUsed(one));
  by("unused").hidden = unused.length === 0;
  by("unused").querySelector("summary").textContent = `${unused.length} types were not found in these pictures`;
  by("unused").querySelector("div").replaceChildren(...unused.map(card));
  if (focused) document.getElementById(focused)?.focus();
  by("history").replaceChildren(...types.history.map(words => make("li", {}, words)));
  drawTree(types.tree);
}

// The server was busy: a picture has no other way to come again.
function again(event) {
  const image = event.target, turn = Number(image.dataset.turn ?? 0) + 1;
  if (turn > 20) return;
  image.dataset.turn = String(turn);
  setTimeout(() => { image.src = `${image.src.replace(/&turn=\d+$/, "")}&turn=${turn}`; }, 1000);
}

function card(type) {
  const id = `type-${type.number}`, called = `type ${type.number}`;
  const name = make("input", { id: `${id}-name`, value: type.name, maxlength: "60", placeholder: "name", autocomplete: "off",
    "aria-label": `Name of ${called}` });
  name.addEventListener("change", () => change("set", { type: type.number, name: name.value },
    name.value ? `${called} is called ${name.value}.` : `${called} has no name.`)());
  const pick = make("input", { type: "checkbox", id: `${id}-pick`, "aria-label": `Choose ${type.title} to merge` });
  pick.checked = chosen.has(type.number);
  pick.addEventListener("change", () => {
    if (pick.checked) chosen.add(type.number); else chosen.delete(type.number);
    by("merge").disabled = chosen.size < 2;
  });
  const colour = make("input", { type: "color", value: type.colour, "aria-label": `Colour of ${type.title}` });
  colour.addEventListener("change", () => change("colour", { type: type.number, colour: colour.value },
    `${type.title} has another colour.`)());
  const crops = make("div", { class: "crops" }, ...type.crops.map(source =>
    make("img", { src: source, alt: "", width: "48", height: "48", loading: "lazy" })));
  const notes = [type.hidden ? "hidden" : "", type.merged.length ? `with ${type.merged.join(", ")} in it` : "",
    type.origin === null ? "" : `from type ${type.origin}`].filter(Boolean).join("; ");
  const made = make("article", { class: type.hidden ? "card type hidden" : "card type", id, "data-type": String(type.number) },
    make("div", { class: "row" }, pick, chip(type), name, colour),
    make("div", { class: "shown" },
      make("img", { class: "prototype", src: type.prototype, alt: `What is typical of ${type.title}`, width: "96", height: "96",
        loading: "lazy", onerror: again }), crops),
    make("p", {}, make("strong", {}, String(type.count)), ` in ${type.pictures} ${type.pictures === 1 ? "picture" : "pictures"}`,
      make("span", { class: "soft" }, notes ? ` (${notes})` : "")),
    make("div", { class: "row" },
      make("button", { id: `${id}-split`, onclick: change("split", { type: type.number }, `${type.title} is split in two.`) },
        "Split in two"),
      make("button", { id: `${id}-hide`, onclick: change("hide", { type: type.number, hidden: !type.hidden },
        type.hidden ? `${type.title} is shown.` : `${type.title} is hidden.`) }, type.hidden ? "Show" : "Hide")));
  made.style.setProperty("--own", type.colour);
  return made;
}

// Prototypes of training, and which of them were put together how surely: the last merges first.
function drawTree(tree) {
  by("tree").hidden = tree === null;
  if (tree === null) return;
  const first = tree.members.length;
  const node = number => {
    if (number < first) return make("li", {}, `cluster ${number}, of type ${tree.members[number]}`);
    const [one, other, together] = tree.merges[number - first] ?? [0, 0, 0];
    return make("li", {}, `together in ${Math.round(100 * together)}% of clusterings`, make("ul", {}, node(one), node(other)));
  };
  by("tree").querySelector("div").replaceChildren(make("ul", {}, node(first + tree.merges.length - 1)));
}
