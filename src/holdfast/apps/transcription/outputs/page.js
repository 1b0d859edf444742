"use strict";
// Marks the word that is being said, and plays from the word or time that is clicked.
const player = document.getElementById("player");
const words = [...document.querySelectorAll("span[data-start]")];
const starts = words.map((word) => Number(word.dataset.start));
let marked = null;

function wordAt(seconds) {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= seconds) low = middle;
    else high = middle - 1;
  }
  const word = words[low];
  return word && starts[low] <= seconds && seconds <= Number(word.dataset.end) ? word : null;
}

function follow() {
  const word = wordAt(player.currentTime);
  if (word === marked) return;
  if (marked) marked.classList.remove("now");
  marked = word;
  if (!word) return;
  word.classList.add("now");
  const place = word.getBoundingClientRect();
  const header = document.querySelector("header").getBoundingClientRect();
  if (place.top < header.bottom || place.bottom > window.innerHeight) {
    word.scrollIntoView({ block: "center" });
  }
}

if (player) {
  player.addEventListener("loadedmetadata", () => {
    // A file that may hold pictures, and holds none.
    player.classList.toggle("sound", player.videoHeight === 0);
  });
  player.addEventListener("timeupdate", follow);
  player.addEventListener("seeked", follow);
  document.addEventListener("click", (event) => {
    const place = event.target.closest("[data-start]");
    if (!place) return;
    player.currentTime = Number(place.dataset.start);
    player.play().catch(() => {});
  });
}
