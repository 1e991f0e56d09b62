"use strict";
// Transcripts lie in the page as deflated text and are unpacked when their run is opened.
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
function piece(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
function draw(place, blocks) {
  for (const [kind, title, text, marks] of blocks) {
    const cleared = marks.some((m) => m.startsWith("cleared"));
    const box = piece("div", "block " + kind + (cleared ? " cleared" : ""));
    box.append(piece("h4", "", title));
    for (const mark of marks) box.append(piece("span", "mark", mark));
    if (text) box.append(piece("pre", "", text));
    place.append(box);
  }
}
document.addEventListener("toggle", async (event) => {
  const place = event.target.open && event.target.querySelector(":scope > .transcript[data-run]");
  if (!place) return;
  const source = document.getElementById("t-" + place.dataset.run);
  delete place.dataset.run;
  place.textContent = "";
  try {
    draw(place, await unpack(source.textContent.trim()));
  } catch (error) {
    place.textContent = "This browser can't unpack the transcript (" + error + "). It is in the run's events.jsonl.";
  }
}, true);
