// What one cannot read of a page, or not reach by keys: a list of complaints.
() => {
  const found = new Set();
  const say = (what, element) => found.add(`${what}: ${element.tagName} ${element.textContent.trim().slice(0, 50)}`);
  const style = (element) => getComputedStyle(element);
  const goesOn = (box) => box.scrollWidth > box.clientWidth + 1;
  const isSeen = (element) => element.checkVisibility() && !element.closest(".visually-hidden, .skip, script");
  const width = document.documentElement.clientWidth;
  const range = document.createRange();
  const text = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (text.nextNode()) {
    const node = text.currentNode, own = node.parentElement;
    if (!node.data.trim() || !isSeen(own)) continue;
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()];
    const right = Math.max(...boxes.map((box) => box.right)), left = Math.min(...boxes.map((box) => box.left));
    for (let at = own; ; at = at.parentElement) {
      if (at === document.body) {
        if (left < -1 || right > width + 1) say("beyond the page", own);
        break;
      }
      const edge = at.getBoundingClientRect(), how = style(at).overflowX;
      if (how === "auto" || how === "scroll") break;
      if (["hidden", "clip"].includes(how) && (left < edge.left - 1 || right > edge.right + 1)) say("cut", own);
    }
    if (own.closest("code, pre, svg")) continue;
    for (const word of node.data.matchAll(/[^\s\-/]+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].filter((box) => box.width > 1).map((box) => Math.round(box.top)));
      if (word[0].length <= 24 && lines.size > 1) say("broken word", own);
    }
  }
  for (const element of document.querySelectorAll("body *")) {
    if (!isSeen(element) || element.closest("svg")) continue;
    const how = style(element);
    if (["hidden", "clip"].includes(how.overflowX) && goesOn(element)) say("cut", element);
    if (!["auto", "scroll"].includes(how.overflowX) || !goesOn(element)) continue;
    const shadow = how.boxShadow;
    element.scrollLeft = element.scrollWidth;
    element.dispatchEvent(new Event("scroll"));
    if (style(element).boxShadow === shadow) say("goes on without a hint", element);
    if (element.tabIndex < 0) say("scrolls without keys", element);
    const edge = element.getBoundingClientRect();
    for (const row of element.querySelectorAll("tr")) {
      const first = row.cells[0].getBoundingClientRect(), last = row.lastElementChild.getBoundingClientRect();
      if (Math.abs(first.left - edge.left) > 3) say("name scrolls away", row);
      if (first.width > 0.6 * edge.width) say("name leaves no room", row);
      if (last.right > edge.right + 1) say("last column is cut", row);
    }
    element.scrollLeft = 0;
  }
  for (const table of document.querySelectorAll("table")) if (!table.closest(".scroll")) say("cannot scroll", table);
  for (const label of document.querySelectorAll("svg text")) {
    const edge = label.ownerSVGElement.getBoundingClientRect(), box = label.getBoundingClientRect();
    if (isSeen(label) && (box.left < edge.left - 1 || box.right > edge.right + 1)) say("cut", label);
  }
  const problems = [...document.querySelectorAll(".problem")].map((one) => one.textContent);
  if (new Set(problems).size < problems.length) say("said twice", document.querySelector(".problem"));
  return [...found];
}
