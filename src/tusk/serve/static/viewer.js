// A picture with its masks and points, which can be zoomed. Points are drawn in pixels of the screen.
import { make, request } from "./api.js";
import { kept, typeOf } from "./state.js";

const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

export class Viewer {
  constructor(place, { onPoint = null, onPlace = null, chosen = () => false } = {}) {
    Object.assign(this, { onPoint, onPlace, chosen, found: null, zoom: 1, masks: true, labels: true });
    this.image = make("img", { alt: "" });
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.points = svg("svg", { class: "points" });
    this.sheet = make("div", { class: "sheet" }, this.image, this.canvas, this.points);
    this.stage = make("div", { class: "stage", tabindex: "0", role: "group", "aria-label": "Picture" }, this.sheet);
    const button = (words, label, act) => make("button", { "aria-label": label, onclick: act, type: "button" }, words);
    this.percent = make("output", {});
    place.append(make("div", { class: "zoom row" },
      button("−", "Zoom out", () => this.zoomBy(1 / 1.5)), button("+", "Zoom in", () => this.zoomBy(1.5)),
      button("Fit", "Fit the picture", () => this.zoomBy(0)), this.percent), this.stage);
    this.stage.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2);
    }, { passive: false });
    this.stage.addEventListener("keydown", event => {
      if (event.key === "+" || event.key === "=") this.zoomBy(1.5);
      else if (event.key === "-") this.zoomBy(1 / 1.5);
      else if (event.key === "0") this.zoomBy(0);
    });
    this.points.addEventListener("click", event => {
      if (this.onPlace === null || this.found === null || event.target.closest("g.point")) return;
      const box = this.points.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * this.found.width - 0.5;
      const y = (event.clientY - box.top) / box.height * this.found.height - 0.5;
      this.onPlace(x, y);
    });
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  zoomBy(factor) {
    this.zoom = factor === 0 ? 1 : Math.min(40, Math.max(1, this.zoom * factor));
    this.draw();
  }

  async show(found) {
    const same = this.found?.number === found.number;
    this.found = found;
    if (!same) {
      this.zoom = 1;
      this.mask = null;
      this.image.alt = found.name;
      const picture = await (await request(`/api/pictures/${found.number}/image`)).blob();
      if (this.url) URL.revokeObjectURL(this.url);
      this.url = URL.createObjectURL(picture);
      this.image.src = this.url;
      await this.image.decode();
      if (found.masks) {
        const mask = await (await request(`/api/pictures/${found.number}/mask.png`)).blob();
        const bitmap = await createImageBitmap(mask, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
        const scratch = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
        scratch.drawImage(bitmap, 0, 0);
        this.mask = scratch.getImageData(0, 0, bitmap.width, bitmap.height);
      }
    }
    this.draw();
  }

  draw() {
    const found = this.found;
    if (found === null || this.stage.clientWidth === 0) return;
    const room = [this.stage.clientWidth - 2, Math.max(240, Math.min(innerHeight * 0.7, 900))];
    const fit = Math.min(room[0] / found.width, room[1] / found.height);
    const scale = fit * this.zoom;
    const [width, height] = [found.width * scale, found.height * scale];
    this.sheet.style.width = `${width}px`;
    this.sheet.style.height = `${height}px`;
    this.percent.textContent = `${Math.round(100 * scale)}%`;
    this.image.classList.toggle("pixels", scale >= 3);
    this.points.setAttribute("viewBox", `${-0.5 * scale} ${-0.5 * scale} ${width} ${height}`);
    const shown = kept(found);
    this.drawMask(shown);
    const focused = document.activeElement?.dataset?.instance;
    const radius = Math.max(4, Math.min(9, Math.sqrt(width * height / (shown.length + 4)) / 12));
    this.points.replaceChildren(...shown.map(one => this.point(one, scale, radius)));
    this.points.setAttribute("role", "group");
    this.points.setAttribute("aria-label", `${shown.length} points`);
    if (focused !== undefined) this.points.querySelector(`[data-instance="${focused}"]`)?.focus();
  }

  point(one, scale, radius) {
    const type = typeOf(one.type) ?? { colour: "#888888", title: `type ${one.type}`, number: one.type };
    const chosen = this.chosen(this.found.number, one.instance);
    const group = svg("g", { class: chosen ? "point chosen" : "point", "data-instance": one.instance, "data-type": one.type });
    const [x, y] = [one.x * scale, one.y * scale];
    group.append(svg("circle", { class: "outer", cx: x, cy: y, r: radius + (chosen ? 5 : 2) }));
    group.append(svg("circle", { cx: x, cy: y, r: radius, fill: type.colour, class: one.added ? "added" : "" }));
    const words = `${type.title}, at ${Math.round(one.x)}, ${Math.round(one.y)}`
      + (one.added ? ", added" : `, gain ${one.gain.toFixed(1)}, score ${one.score.toFixed(2)}`);
    if (this.labels) {
      const short = type.title.length > 14 ? `${type.title.slice(0, 13)}…` : type.title;
      // On the left where there is no room on the right: about 9 pixels for a letter.
      const left = x + radius + 4 + 9 * (type.name ? short.length : 2) > this.found.width * scale && x > this.found.width * scale / 2;
      const text = svg("text", left ? { x: x - radius - 4, y: y + 5, "text-anchor": "end" } : { x: x + radius + 4, y: y + 5 });
      text.textContent = type.name ? short : String(type.number);
      group.append(text);
    }
    const title = svg("title", {});
    title.textContent = words;
    group.append(title);
    if (this.onPoint !== null) {
      for (const [name, value] of [["tabindex", 0], ["role", "button"], ["aria-pressed", chosen], ["aria-label", words]]) {
        group.setAttribute(name, value);
      }
      group.addEventListener("click", () => this.onPoint(one));
      group.addEventListener("keydown", event => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        this.onPoint(one);
      });
    }
    return group;
  }

  drawMask(shown) {
    const mask = this.mask, context = this.canvas.getContext("2d");
    if (!mask || !this.masks) { this.canvas.width = this.canvas.height = 1; return; }
    this.canvas.width = mask.width;
    this.canvas.height = mask.height;
    const colours = new Map(shown.map(one => {
      const colour = typeOf(one.type)?.colour ?? "#888888";
      return [one.instance + 1, [1, 3, 5].map(place => parseInt(colour.slice(place, place + 2), 16))];
    }));
    const drawn = context.createImageData(mask.width, mask.height);
    for (let place = 0; place < mask.data.length; place += 4) {
      const colour = colours.get(mask.data[place] + 256 * mask.data[place + 1]);
      if (!colour) continue;
      drawn.data.set(colour, place);
      drawn.data[place + 3] = 110;
    }
    context.putImageData(drawn, 0, 0);
  }
}
