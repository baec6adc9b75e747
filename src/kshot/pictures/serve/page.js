// The page: facts about the head, changes, and the progress of a refit.
import { listenForChoices, showAlbum } from "./album.js";
import { listenForNewClass } from "./newclass.js";
import { ask, askJson, byId, element, plural } from "./server.js";
import { classesChanged, headChanged, listenForTries } from "./tries.js";

const POLL_MILLISECONDS = 400;
let head = null, sent = 0, polling = false;

function showAbout() {
  const pictures = head.shots.reduce((a, b) => a + b, 0);
  byId("about").textContent =
    `${head.method} on ${head.backbone}: ${head.classes.length} classes, ${plural(pictures, "picture")}${accuracy(head.accuracy)}`;
  byId("undo").disabled = !head.undo;
  byId("undo").textContent = head.undo ? `Undo: ${head.undo}` : "Undo";
}

function accuracy(found) {
  if (!found) return "";
  const [value, low, high] = found.map((share) => (100 * share).toFixed(1));
  return `; left-out accuracy ${value} % [${low}, ${high}]`;
}

function showState(error) {
  const fitting = sent > 0 || head?.progress != null;
  byId("refit").hidden = !fitting;
  if (fitting) byId("refit").value = head?.progress ?? 0;
  if (error) byId("state").textContent = error;
  else if (fitting) byId("state").textContent = "Learning the change; the head before it answers meanwhile.";
  else if (head) byId("state").textContent = head.refits ? "All changes are learnt and saved." : "";
  byId("state").className = error ? "error" : "";
}

async function refresh() {
  const before = head;
  head = await askJson("/api/head");
  showAbout();
  if (before?.edits !== head.edits || before?.refits !== head.refits) {
    classesChanged();
    await showAlbum(head);
  }
  if (before && before.refits !== head.refits) headChanged();
}

async function poll() {
  if (polling) return;
  polling = true;
  try {
    do {
      await new Promise((done) => setTimeout(done, POLL_MILLISECONDS));
      await refresh();
      showState();
    } while (sent > 0 || head.progress != null);
  } catch (error) {
    showState(error.message);
  } finally {
    polling = false;
  }
}

// Send a change; the server answers when it is learnt and saved, and is polled until then.
async function change(path, body) {
  sent += 1;
  showState();
  poll();
  let failure;
  try {
    await ask(path, { method: "POST", body });
  } catch (error) {
    failure = error;
  }
  sent -= 1;
  await refresh().catch(() => {});
  showState(failure?.message);
  if (failure) throw failure;
}

const undo = () => change("/api/undo").catch(() => {});
byId("undo").onclick = undo;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && head?.undo) {
    event.preventDefault();
    undo();
  }
});
document.addEventListener("visibilitychange", () => document.hidden || poll());
byId("download").onclick = async () => {
  try {
    const link = element("a");
    link.href = URL.createObjectURL(await (await ask("/api/head.safetensors")).blob());
    link.download = "head.safetensors";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  } catch (error) {
    showState(error.message);
  }
};
const host = { change, classes: () => head.album.map((one) => one.label) };
listenForTries(host);
listenForChoices(host);
listenForNewClass(host);
refresh().then(() => (head.progress != null ? poll() : showState()), (error) => (byId("about").textContent = error.message));
