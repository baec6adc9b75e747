// The form for a new class: its name, and any pictures of it.
import { byId, plural } from "./server.js";

// The limits of one request, as in guards.py.
const MOST_BYTES = 20_000_000, MOST_TOGETHER = 100;

export function listenForNewClass(host) {
  const form = byId("new-class"), message = byId("new-message");
  form.onsubmit = async (event) => {
    event.preventDefault();
    const name = byId("new-name").value.trim(), files = [...byId("new-files").files];
    const show = (text, error) => {
      message.textContent = text;
      message.className = error ? "error" : "";
    };
    if (host.classes().includes(name)) return show(`There is a class ${name} already. Add pictures to it under “Try pictures”.`, true);
    byId("new-add").disabled = true;
    show(files.length ? `adding ${name} with ${plural(files.length, "picture")} …` : `adding ${name} …`);
    try {
      await send(host, name, files);
      show(`added ${name}`);
      form.reset();
    } catch (error) {
      show(error.message, true);
    }
    byId("new-add").disabled = false;
  };
}

async function send(host, name, files) {
  if (!files.length) return host.change(`/api/classes?${new URLSearchParams({ label: name })}`);
  for (const group of grouped(files)) {
    const query = new URLSearchParams([["label", name], ["new", "1"], ...group.map((file) => ["size", file.size])]);
    try {
      await host.change(`/api/shots?${query}`, new Blob(group));
    } catch (error) {
      // The server names pictures by their number.
      throw new Error(error.message.replace(/^picture (\d+)/, (_, number) => group[number - 1].name).replace(/^the picture/, group[0].name));
    }
  }
}

function grouped(files) {
  const groups = [];
  let bytes = Infinity;
  for (const file of files) {
    if (bytes + file.size > MOST_BYTES || groups.at(-1).length === MOST_TOGETHER) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1).push(file);
    bytes += file.size;
  }
  return groups;
}
