// A list of all addresses, from the server's own description.
document.getElementById("origin").textContent = location.origin;
const description = await (await fetch("/openapi.json")).json();
const paths = document.getElementById("paths");
const add = (parent, tag, text) => {
  const made = document.createElement(tag);
  made.textContent = text;
  parent.append(made);
  return made;
};
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, about] of Object.entries(methods)) {
    const card = add(paths, "article", "");
    card.className = "card";
    add(card, "h2", `${method.toUpperCase()} ${path}`);
    add(card, "p", about.summary ?? "");
    for (const one of about.parameters ?? []) {
      add(card, "p", `${one.in} ${one.name}${one.required ? "" : ", optional"}`).className = "soft";
    }
    const body = about.requestBody?.content ?? {};
    for (const [kind, content] of Object.entries(body)) {
      const name = content.schema?.$ref?.split("/").pop();
      add(card, "p", `body: ${kind}`).className = "soft";
      const fields = description.components?.schemas?.[name]?.properties ?? {};
      add(card, "p", Object.keys(fields).join(", ")).className = "soft";
    }
  }
}
