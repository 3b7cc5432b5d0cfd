// The tables of the page, made of the document in the element `data`, and pictures that a drag of the mouse enlarges.
// All text is set as text, never as HTML.
"use strict";

const MOST_ROWS = 1000; // of a table that are shown
const OPEN_ROWS = 50; // of a part that is open at first

const add = (parent, name, text = "") => {
  const element = document.createElement(name);
  element.textContent = text;
  parent.append(element);
  return element;
};
const words = (name) => name.replaceAll("_", " ");
const isScalar = (value) => value === null || typeof value !== "object";
const isCell = (value) => isScalar(value) || (Array.isArray(value) && value.length < 9 && value.every(isScalar));

function text(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return value.map(text).join(", ");
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(4))) : String(value);
}

// Returns the rows of a value: the items of a list, the places of curves side by side, or one object.
function rowsOf(value) {
  if (isScalar(value)) return [{ value }];
  if (Array.isArray(value)) return value.map((item) => (isScalar(item) || Array.isArray(item) ? { value: item } : item));
  const curves = Object.entries(value);
  if (!curves.length || !curves.every(([, curve]) => Array.isArray(curve) && curve.every(isScalar))) return [value];
  const longest = Math.max(...curves.map(([, curve]) => curve.length));
  const row = (_, place) => Object.fromEntries([["place", place], ...curves.map(([name, curve]) => [name, curve[place]])]);
  return Array.from({ length: longest }, row);
}

// Shows a value: a table of what fits into cells, and below it a part for each value that does not.
function show(parent, value) {
  const rows = rowsOf(value);
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  const nested = [...names].filter((name) => rows.some((row) => !isCell(row[name] ?? null)));
  const columns = [...names].filter((name) => !nested.includes(name));
  if (columns.length) table(parent, rows, columns);
  rows.forEach((row, number) => {
    const label = Object.values(row).find((cell) => typeof cell === "string") ?? (rows.length > 1 ? `${number + 1}` : "");
    for (const name of nested.filter((name) => Object(row[name]) === row[name])) {
      part(parent, label ? `${label}: ${words(name)}` : words(name), row[name]);
    }
  });
}

// A part with a heading, whose content is made when it is opened.
function part(parent, heading, value) {
  const details = add(parent, "details");
  add(details, "summary", heading);
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) show(details, value);
  });
  details.open = rowsOf(value).length <= OPEN_ROWS;
}

// A table that is sorted by a click on the name of a column.
function table(parent, rows, columns) {
  const element = add(add(parent, "div"), "table");
  element.parentNode.className = "wide";
  const head = add(add(element, "thead"), "tr");
  const body = add(element, "tbody");
  const kinds = columns.map((name) => typeof rows.map((row) => row[name]).find((cell) => (cell ?? null) !== null));
  const fill = (sorted) => {
    body.replaceChildren();
    for (const row of sorted.slice(0, MOST_ROWS)) {
      const line = add(body, "tr");
      columns.forEach((name, column) => {
        const cell = add(line, "td", text(row[name]));
        cell.className = cell.textContent.length > 40 ? "prose" : kinds[column];
      });
    }
  };
  const order = (one, other) => {
    if (one === null || other === null) return (one === null) - (other === null);
    return typeof one === "number" && typeof other === "number" ? one - other : text(one).localeCompare(text(other));
  };
  for (const name of columns) {
    const cell = add(head, "th");
    cell.scope = "col";
    add(cell, "button", words(name)).addEventListener("click", () => {
      const direction = cell.ariaSort === "ascending" ? "descending" : "ascending";
      for (const other of head.cells) other.ariaSort = "none";
      cell.ariaSort = direction;
      const sign = direction === "ascending" ? 1 : -1;
      fill([...rows].sort((one, other) => sign * order(one[name] ?? null, other[name] ?? null)));
    });
  }
  if (rows.length > MOST_ROWS) add(parent, "p", `The first ${MOST_ROWS} of ${rows.length} rows, in the chosen order.`);
  fill(rows);
}

// Enlarges the part of a picture over which the mouse is dragged; a double click shows all of it again.
function enlargeable(svg) {
  const whole = svg.getAttribute("viewBox");
  const place = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  let start, frame;
  const area = (event) => {
    const end = place(event);
    const [x, y] = [Math.min(start.x, end.x), Math.min(start.y, end.y)];
    return { x, y, width: Math.abs(end.x - start.x), height: Math.abs(end.y - start.y) };
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    start = place(event);
    frame = svg.appendChild(document.createElementNS(svg.namespaceURI, "rect"));
    frame.setAttribute("class", "frame");
  });
  svg.addEventListener("pointermove", (event) => {
    if (start) for (const [name, value] of Object.entries(area(event))) frame.setAttribute(name, value);
  });
  const end = (event) => {
    if (!start) return;
    const { x, y, width, height } = area(event);
    if (event.type === "pointerup" && width > 4 && height > 4) svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    frame.remove();
    start = undefined;
  };
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, end);
  svg.addEventListener("dblclick", () => svg.setAttribute("viewBox", whole));
}

show(document.querySelector("main"), JSON.parse(document.getElementById("data").textContent));
document.querySelectorAll("svg").forEach(enlargeable);
