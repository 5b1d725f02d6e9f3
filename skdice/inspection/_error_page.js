"use strict";

const form = document.getElementById("filters");
const sentences = Array.from(document.querySelectorAll("main li"), (item) => ({
  item,
  entities: readEntities(item),
}));

/** Gather the marks of each entity of a sentence, with its kind and labels. */
function readEntities(item) {
  const entities = new Map();
  for (const mark of item.querySelectorAll("mark")) {
    const { entity: number, kind } = mark.dataset;
    if (!entities.has(number)) {
      entities.set(number, { kind, labels: [], marks: [] });
    }
    const entity = entities.get(number);
    entity.marks.push(mark);
    for (const child of mark.children) {
      if (child.tagName !== "MARK") {
        entity.labels.push(child.textContent);
      }
    }
  }
  return Array.from(entities.values());
}

/** Return the values of the checked boxes of one name. */
function chosen(name) {
  const boxes = form.querySelectorAll(`input[name="${name}"]:checked`);
  return new Set(Array.from(boxes, (box) => box.value));
}

function update() {
  const kinds = chosen("kind");
  const labels = chosen("label");
  const onlyErrors = form.elements["only-errors"].checked;
  const everything = !form.querySelector("fieldset input:not(:checked)");
  let shown = 0;
  for (const { item, entities } of sentences) {
    // A sentence without entities has nothing to choose it by.
    let isShown = everything && !onlyErrors;
    for (const { kind, labels: own, marks } of entities) {
      const isChosen = kinds.has(kind) && own.some((label) => labels.has(label));
      for (const mark of marks) {
        mark.classList.toggle("off", !isChosen);
      }
      isShown ||= isChosen && !(onlyErrors && kind === "correct");
    }
    item.hidden = !isShown;
    shown += isShown;
  }
  const format = (count) => count.toLocaleString("en");
  document.getElementById("shown").textContent =
    `${format(shown)} of ${format(sentences.length)} sentences shown`;
  document.getElementById("nothing").hidden = shown > 0;
}

form.addEventListener("change", update);
form.addEventListener("submit", (event) => event.preventDefault());
for (const button of form.querySelectorAll("button")) {
  button.addEventListener("click", () => {
    for (const box of form.querySelectorAll('input[name="label"]')) {
      box.checked = button.dataset.check === "all";
    }
    update();
  });
}
update();
