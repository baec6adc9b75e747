// Pictures of phones made small enough to send, and the tried pictures kept for a reload of this tab.
const MOST_PIXELS = 16e6, LONGEST_SIDE = 2048, MOST_KEPT = 200;
const session = (sessionStorage.session ??= crypto.getRandomValues(new Uint32Array(2)).join("-"));

// Larger pictures are reduced here; what a browser cannot decode (HEIC) goes to the server as it is.
export async function reduced(file) {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) return file;
  const { width, height } = bitmap;
  if (width * height <= MOST_PIXELS && file.size < 20e6) return bitmap.close(), file;
  const scale = LONGEST_SIDE / Math.max(width, height);
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return new File([await canvas.convertToBlob({ type: "image/jpeg", quality: 0.95 })], file.name, { type: "image/jpeg" });
}

function store(mode) {
  return new Promise((done, fail) => {
    const open = indexedDB.open("kshot", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("tried");
    open.onerror = () => fail(open.error);
    open.onsuccess = () => done(open.result.transaction("tried", mode).objectStore("tried"));
  });
}

const answered = (request) => new Promise((done, fail) => ((request.onsuccess = () => done(request.result)), (request.onerror = () => fail(request.error))));

// Private windows may forbid the store; then a reload begins anew.
export const keep = async (files) => store("readwrite").then((tried) => answered(tried.put(files.slice(-MOST_KEPT), session))).catch(() => {});
export const kept = async () => store("readonly").then((tried) => answered(tried.get(session))).then((files) => files ?? [], () => []);
