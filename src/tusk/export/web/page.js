// Pictures from this machine -> points, drawn into them. Nothing is sent anywhere.
"use strict";

const settings = JSON.parse(document.getElementById("settings").textContent);
const state = document.getElementById("state");
const results = document.getElementById("results");
const rows = [];
let session = null;

// Where the whole picture lies in the image that the network gets; as in data/framing.
function frameOf(width, height) {
  const size = settings.size;
  if (settings.fit === "letterbox" || settings.fit === "pad") {
    const longest = Math.max(width, height, settings.fit === "pad" ? size : 0);
    const columns = Math.max(1, Math.round(width * size / longest));
    const rows = Math.max(1, Math.round(height * size / longest));
    return { wide: size, high: size, columns, rows,
             column: Math.floor((size - columns) / 2), row: Math.floor((size - rows) / 2) };
  }
  const scale = Math.min(size / Math.min(width, height), 4 * size / Math.max(width, height));
  const columns = Math.max(1, Math.round(width * scale)), rows = Math.max(1, Math.round(height * scale));
  const wide = Math.max(columns, settings.least), high = Math.max(rows, settings.least);
  return { wide, high, columns, rows,
           column: Math.floor((wide - columns) / 2), row: Math.floor((high - rows) / 2) };
}

function tensorOf(picture, frame) {
  const canvas = document.createElement("canvas");
  canvas.width = frame.wide;
  canvas.height = frame.high;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.fillStyle = "black";
  context.fillRect(0, 0, frame.wide, frame.high);
  context.drawImage(picture, frame.column, frame.row, frame.columns, frame.rows);
  const bytes = context.getImageData(0, 0, frame.wide, frame.high).data;
  const area = frame.wide * frame.high;
  const values = new Float32Array(3 * area);
  for (let place = 0; place < area; place++) {
    const pixel = [bytes[4 * place], bytes[4 * place + 1], bytes[4 * place + 2]];
    const grey = Math.round(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]);
    for (let channel = 0; channel < 3; channel++)
      values[channel * area + place] = (settings.grey ? grey : pixel[channel]) / 255;
  }
  return new ort.Tensor("float32", values, [1, 3, frame.high, frame.wide]);
}

async function detect(picture, width, height) {
  const frame = frameOf(width, height);
  const found = await session.run({ image: tensorOf(picture, frame) });
  const points = [];
  for (let place = 0; place < found.score.data.length; place++) {
    const score = found.score.data[place];
    const x = (found.xy.data[2 * place] + 0.5 - frame.column) * width / frame.columns - 0.5;
    const y = (found.xy.data[2 * place + 1] + 0.5 - frame.row) * height / frame.rows - 0.5;
    if (score <= 0 || score < settings.minScore || x < -0.5 || y < -0.5 || x > width - 0.5 || y > height - 0.5) continue;
    const type = Number(found.type.data[place]);
    points.push({ x, y, score, type, probability: found.probability.data[place], name: settings.names[type] });
  }
  return points;
}

function draw(picture, width, height, points) {
  const times = Math.max(1, Math.ceil(320 / Math.max(width, height)));
  const canvas = document.createElement("canvas");
  canvas.width = width * times;
  canvas.height = height * times;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const radius = Math.max(7, Math.max(canvas.width, canvas.height) / 60);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `${radius * 1.3}px sans-serif`;
  for (const point of points) {
    const x = (point.x + 0.5) * times, y = (point.y + 0.5) * times;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = settings.colours[point.type][0];
    context.fill();
    context.fillStyle = settings.colours[point.type][1];
    context.fillText(String(point.type), x, y);
  }
  return canvas;
}

async function show(files) {
  for (const file of files) {
    const figure = document.createElement("figure"), words = document.createElement("figcaption");
    results.prepend(figure);
    try {
      const picture = await createImageBitmap(file);
      const points = await detect(picture, picture.width, picture.height);
      const counts = new Map();
      for (const point of points) {
        counts.set(point.name, (counts.get(point.name) || 0) + 1);
        rows.push([file.name, point.type, point.name, point.x.toFixed(2), point.y.toFixed(2),
                   point.score.toFixed(4), point.probability.toFixed(4)]);
      }
      const kinds = [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
      words.textContent = `${file.name}: ${points.length} things${kinds ? ": " + kinds : ""}`;
      figure.append(words, draw(picture, picture.width, picture.height, points));
    } catch (error) {
      words.textContent = `${file.name}: it cannot be read as a picture (${error.message})`;
      figure.append(words);
    }
  }
  document.getElementById("save").disabled = rows.length === 0;
}

// A text that a spreadsheet could take for a formula gets a ' before it.
function cell(value) {
  const text = String(value);
  const safe = typeof value === "string" && !/^[+-]?[0-9]+(\.[0-9]+)?$/.test(text) && /^[=+\-@'\s]/.test(text)
    ? "'" + text : text;
  return /[",;|\s]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

function save() {
  const head = ["image", "type", "name", "x", "y", "score", "probability"];
  const text = [head, ...rows].map(row => row.map(cell).join(",")).join("\n") + "\n";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = "points.csv";
  link.click();
}

async function start() {
  ort.env.wasm.numThreads = 1;
  session = await ort.InferenceSession.create("model.onnx", { executionProviders: ["wasm"], logSeverityLevel: 3 });
  state.textContent = "Ready.";
  const drop = document.getElementById("drop"), files = document.getElementById("files");
  files.addEventListener("change", () => show(files.files));
  drop.addEventListener("dragover", event => event.preventDefault());
  drop.addEventListener("drop", event => { event.preventDefault(); show(event.dataTransfer.files); });
  document.getElementById("save").addEventListener("click", save);
}

start().catch(error => { state.textContent = `The model cannot be loaded: ${error.message}`; });
