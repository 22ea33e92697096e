// The camera: asked for by a press only, shown with the square that is sent.

import { $, say, memory } from "./dom.js";

const SIDE = 320; // pixels of the square that is sent

export const camera = { name: "camera", live: true, start, stop, resume, grab, ready: () => Boolean(stream), taken: () => () => {} };

let stream = null;
let starting = false;
let devices = [];
let wasOn = false;
let changed = () => {};
let used = () => {};
const video = $("#video");

export function setUp(tell, remember) {
  changed = tell;
  used = remember;
  $("#camera-start").addEventListener("click", () => start());
  $("#camera-stop").addEventListener("click", () => {
    stop();
    wasOn = false;
    memory.set("camera", "off");
  });
  $("#camera-switch").addEventListener("click", next);
  video.addEventListener("loadedmetadata", place);
  video.addEventListener("resize", place);
  new ResizeObserver(place).observe($("#camera-stage"));
}

const PLAIN = {
  NotAllowedError: "The camera was not allowed. Allow it for this page (often by the sign beside the address) and start again, or choose Image or Draw.",
  NotFoundError: "No camera was found. Connect one and start again, or choose Image or Draw.",
  NotReadableError: "The camera is used by another program. Close that and start again.",
  OverconstrainedError: "This camera cannot be used. Try another one.",
};

async function start(wish = { facingMode: { ideal: "environment" } }) {
  if (starting) return;
  if (!navigator.mediaDevices?.getUserMedia) {
    return show(window.isSecureContext
      ? "This browser gives pages no camera. Choose Image or Draw instead."
      : "The camera needs https or localhost: browsers give it to no other page. Choose Image or Draw instead.");
  }
  starting = true;
  const from = document.activeElement;
  show("Waiting for the camera …");
  try {
    release();
    stream = await navigator.mediaDevices.getUserMedia({
      video: { ...wish, width: { ideal: 640 }, height: { ideal: 480 } },
      audio: false,
    });
    video.srcObject = stream;
    await video.play();
  } catch (error) {
    release();
    show(PLAIN[error.name] ?? `The camera could not be started (${error.message || error.name}).`);
    return;
  } finally {
    starting = false;
  }
  // Left meanwhile, by another tab or view.
  if ($("#panel-camera").hidden || $("#view-teach").hidden) return stop();
  wasOn = true;
  memory.set("camera", "on");
  used();
  const [track] = stream.getVideoTracks();
  track.addEventListener("ended", () => stop("The camera has stopped. Is it still connected?"));
  // People expect a mirror of a camera that looks at them; what is sent is not mirrored.
  video.classList.toggle("mirror", track.getSettings().facingMode !== "environment");
  const pressed = $("#camera-empty").contains(document.activeElement);
  $("#camera-empty").hidden = true;
  $("#camera-tools").hidden = false;
  // What was pressed is gone, and the focus with it.
  if (pressed) (from === $("#camera-switch") ? from : $("#camera-stop")).focus({ preventScroll: true });
  place();
  changed();
  devices = (await navigator.mediaDevices.enumerateDevices()).filter(({ kind }) => kind === "videoinput");
  $("#camera-switch").hidden = devices.length < 2;
}

function show(message) {
  const pressed = $("#camera-tools").contains(document.activeElement);
  say($("#camera-message"), message);
  $("#camera-empty").hidden = false;
  if (pressed) $("#camera-start").focus({ preventScroll: true });
  $("#camera-tools").hidden = true;
  $("#camera-frame").hidden = true;
  changed();
}

function release() {
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream = null;
  video.srcObject = null;
}

function stop(message = "It looks through your camera. Pictures go to this server and nowhere else.") {
  if (!stream) return;
  release();
  show(message);
}

function next() {
  const now = stream?.getVideoTracks()[0].getSettings().deviceId;
  const index = devices.findIndex(({ deviceId }) => deviceId === now);
  return start({ deviceId: { exact: devices[(index + 1) % devices.length].deviceId } });
}

/** Starts without a press where the camera was on before, or is allowed and was used last. */
async function resume() {
  if (stream || starting || $("#view-teach").hidden) return;
  let allowed = wasOn;
  if (!allowed && memory.get("camera") === "on") {
    const status = await navigator.permissions?.query({ name: "camera" }).catch(() => null);
    allowed = status?.state === "granted";
  }
  if (allowed && !$("#panel-camera").hidden) await start();
}

/** Puts the picture so that its centre square, which is what is sent, fills the stage's. */
function place() {
  const stage = $("#camera-stage");
  const { videoWidth: width, videoHeight: height } = video;
  $("#camera-frame").hidden = !stream || !width;
  if (!width) return;
  const scale = Math.min(stage.clientWidth, stage.clientHeight) / Math.min(width, height);
  video.style.width = `${width * scale}px`;
  video.style.height = `${height * scale}px`;
}

async function grab() {
  const { videoWidth: width, videoHeight: height } = video;
  if (!stream || !width) return null;
  return square(video, width, height);
}

/** The centre square of a picture as JPEG, at most 320 pixels wide. */
export function square(picture, width, height) {
  const side = Math.min(width, height);
  const size = Math.min(side, SIDE);
  const canvas = new OffscreenCanvas(size, size);
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, size, size);
  context.drawImage(picture, (width - side) / 2, (height - side) / 2, side, side, 0, 0, size, size);
  return canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
}

/** All of a picture as PNG, its shorter side at most 320 pixels. */
export function whole(picture, width, height) {
  const scale = Math.min(1, SIDE / Math.min(width, height), 1280 / Math.max(width, height));
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/png" });
}
