// Requests to the server, and elements. Names come from files and folders, so they only ever become text.
const token = new URLSearchParams(location.hash.slice(1)).get("token");

export const byId = (id) => document.getElementById(id);

export async function askJson(path, options = {}) {
  const headers = { ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  if (options.body) headers["Content-Type"] = "application/octet-stream";
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("the server does not answer; is `kshot serve` still running?");
  }
  if (answer.status === 401) byId("locked").hidden = false;
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  throw new Error(content.error || `the server answered ${answer.status}`);
}

export function element(tag, text, parent, className) {
  const created = document.createElement(tag);
  if (text) created.textContent = text;
  if (className) created.className = className;
  if (parent) parent.append(created);
  return created;
}

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
