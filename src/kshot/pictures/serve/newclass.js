// A new class: its name, and pictures of it where there are some.
import { byId, plural } from "./server.js";

// A request may hold as much as the server takes of one picture, and as many pictures as it takes together.
const MOST_BYTES = 20_000_000, MOST_TOGETHER = 100;

export function listenForNewClass(host) {
  const form = byId("new-class"), told = byId("new-told");
  form.onsubmit = async (event) => {
    event.preventDefault();
    const name = byId("new-name").value.trim(), files = [...byId("new-files").files];
    const tell = (words, error) => {
      told.textContent = words;
      told.className = error ? "error" : "";
    };
    if (host.classes().includes(name)) return tell(`There is a class ${name} already. Add pictures to it under “Try pictures”.`, true);
    byId("new-add").disabled = true;
    tell(files.length ? `adding ${name} with ${plural(files.length, "picture")} …` : `adding ${name} …`);
    try {
      await send(host, name, files);
      tell(`added ${name}`);
      form.reset();
    } catch (error) {
      tell(error.message, true);
    }
    byId("new-add").disabled = false;
  };
}

async function send(host, name, files) {
  if (!files.length) return host.change(`/api/classes?${new URLSearchParams({ label: name })}`);
  for (const some of together(files)) {
    const asked = new URLSearchParams([["label", name], ["new", "1"], ...some.map((file) => ["size", file.size])]);
    try {
      await host.change(`/api/shots?${asked}`, new Blob(some));
    } catch (error) {
      // The server knows pictures by their number only.
      throw new Error(error.message.replace(/^picture (\d+)/, (_, number) => some[number - 1].name).replace(/^the picture/, some[0].name));
    }
  }
}

function together(files) {
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
