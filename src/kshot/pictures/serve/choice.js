// Choose one of the classes, or name a new one.
import { element } from "./server.js";

export function classChoice(parent, words) {
  const select = element("select", "", element("label", `${words} `, parent));
  const named = element("label", "called ", parent);
  const input = element("input", "", named);
  input.type = "text";
  input.required = true;
  input.maxLength = 200;
  input.size = 12;
  const isNew = () => select.selectedIndex === select.length - 1;
  const show = () => {
    named.hidden = input.disabled = !isNew();
  };
  select.onchange = show;
  return {
    select,
    // What was chosen before stays chosen: a class that is still there, or the name of one that is yet to come.
    fill(names, chosen) {
      const coming = select.length > 0 && isNew();
      const before = chosen ?? (coming ? input.value.trim() : select.value);
      select.replaceChildren(...names.map((name) => new Option(name, name)), new Option("a new class …", ""));
      const at = names.indexOf(before);
      select.selectedIndex = at >= 0 ? at : coming ? names.length : 0;
      show();
    },
    name: () => (isNew() ? input.value.trim() : select.value),
    asked: () => (isNew() ? { label: input.value.trim(), new: "1" } : { label: select.value }),
    disable(off) {
      select.disabled = off;
      input.disabled = off || !isNew();
    },
  };
}
