// A choice between the classes and the name of a new one.
import { element } from "./server.js";

export function classChoice(parent, caption) {
  const select = element("select", "", element("label", `${caption} `, parent));
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
    // Keep the chosen class, or the name of a new one.
    fill(names, chosen) {
      const naming = select.length > 0 && isNew();
      const before = chosen ?? (naming ? input.value.trim() : select.value);
      select.replaceChildren(...names.map((name) => new Option(name, name)), new Option("a new class …", ""));
      const at = names.indexOf(before);
      select.selectedIndex = at >= 0 ? at : naming ? names.length : 0;
      show();
    },
    name: () => (isNew() ? input.value.trim() : select.value),
    query: () => (isNew() ? { label: input.value.trim(), new: "1" } : { label: select.value }),
    disable(off) {
      select.disabled = off;
      input.disabled = off || !isNew();
    },
  };
}
