// The arm, drawn from points in space: seen from the side and a little above, without perspective.

const AZIMUTH = -0.95;
const ELEVATION = 0.36;
const TRAIL = 36; // samples of the hand's way that are kept
const [CA, SA, CE, SE] = [Math.cos(AZIMUTH), Math.sin(AZIMUTH), Math.cos(ELEVATION), Math.sin(ELEVATION)];

/** [right, up] of a point in metres. */
function flat([x, y, z]) {
  const depth = x * SA + y * CA;
  return [x * CA - y * SA, z * CE + depth * SE];
}

/** A curve through b and c, at t of 0..1 between them (Catmull and Rom). */
function between(a, b, c, d, t) {
  return b.map((_, i) => b[i] + 0.5 * t * (c[i] - a[i] + t * (2 * a[i] - 5 * b[i] + 4 * c[i] - d[i] + t * (3 * (b[i] - c[i]) + d[i] - a[i]))));
}

/** `add` takes each sample; the arm moves on its own between them, a sample or two behind. */
export function armView(canvas) {
  const context = canvas.getContext("2d");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let samples = [];
  let arrived = 0;
  let gap = 100; // milliseconds between two samples, lately
  let payload = false;
  let box = null; // what has to fit, in flat metres; it only grows
  let low = 0; // the height of the floor
  let frame = null;

  function include(point) {
    const [x, y] = flat(point);
    box ??= [x, x, y, y];
    box = [Math.min(box[0], x), Math.max(box[1], x), Math.min(box[2], y), Math.max(box[3], y)];
  }

  function add(sample) {
    const now = performance.now();
    if (samples.length) gap += 0.2 * (Math.min(now - arrived, 400) - gap);
    arrived = now;
    payload = sample.payload;
    samples.push(sample.links);
    if (samples.length > TRAIL) samples.shift();
    low = Math.min(low, ...sample.links.map(([, , z]) => z - 0.1));
    const hand = sample.links[sample.links.length - 1];
    // Room for the whole circle before the hand has gone round it.
    if (!box) for (const d of [-0.1, 0.1]) for (const e of [-0.1, 0.1]) include([hand[0] + d, hand[1], hand[2] + e]);
    for (const point of sample.links) {
      include(point);
      include([point[0], point[1], low]);
    }
    frame ??= requestAnimationFrame(paint);
  }

  function clear() {
    samples = [];
  }

  /** The samples around now, and how far it is between the middle two. */
  function moment() {
    const last = samples.length - 1;
    const t = still.matches ? 1 : Math.min(1, (performance.now() - arrived) / gap);
    return { at: [last - 3, last - 2, last - 1, last].map((i) => samples[Math.max(0, i)]), t };
  }

  function paint() {
    frame = null;
    if (!samples.length || !canvas.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    const room = Math.min(44, width * 0.09);
    const scale = Math.min((width - 2 * room) / (box[1] - box[0] || 1), (height - 2 * room) / (box[3] - box[2] || 1));
    const middle = [(box[0] + box[1]) / 2, (box[2] + box[3]) / 2];
    const to = (point) => {
      const [x, y] = flat(point);
      return [width / 2 + (x - middle[0]) * scale, height / 2 - (y - middle[1]) * scale];
    };
    const { at, t } = moment();
    const links = at[1].map((_, i) => between(at[0][i], at[1][i], at[2][i], at[3][i], t));
    floor(to, links, colour);
    stroke(links.map(([x, y]) => to([x, y, low])), 7, colour("--edge"), 0.25);
    trail(to, t, colour("--accent"));
    limbs(links.map(to), Math.max(9, Math.min(20, scale * 0.045)), colour);
    if (t < 1) frame ??= requestAnimationFrame(paint);
  }

  function stroke(points, width, colour, alpha = 1) {
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    points.forEach((point, index) => (index ? context.lineTo(...point) : context.moveTo(...point)));
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Rings on the ground, which are read at once as flat, and the post that carries the arm. */
  function floor(to, links, colour) {
    const [x0, y0, z0] = links[0];
    for (const radius of [0.12, 0.24, 0.36, 0.48, 0.6]) {
      const ring = Array.from({ length: 49 }, (_, i) => to([x0 + radius * Math.cos((i * Math.PI) / 24), y0 + radius * Math.sin((i * Math.PI) / 24), low]));
      stroke(ring, 1, colour("--edge"), 0.42 - 0.6 * radius);
    }
    if (z0 > low + 0.02) stroke([to([x0, y0, low]), to([x0, y0, z0])], 10, colour("--edge"), 0.35);
  }

  function trail(to, t, colour) {
    const hands = samples.map((links) => links[links.length - 1]);
    const end = hands.length - 1;
    for (let i = 1; i < end; i++) {
      const corners = [i - 2, i - 1, i, i + 1].map((k) => hands[Math.max(0, Math.min(end, k))]);
      const until = i === end - 1 ? t : 1;
      const piece = [0, 0.25, 0.5, 0.75, 1].map((part) => to(between(...corners, part * until)));
      stroke(piece, 2.5, colour, (0.9 * i) / end);
    }
  }

  function limbs(points, thick, colour) {
    const [body, light] = dark.matches ? ["#8fa0bd", "#c9d4e6"] : ["#3c4a63", "#6f7f9c"];
    for (let i = 1; i < points.length; i++) {
      const width = thick * (1.25 - (0.6 * i) / points.length);
      stroke([points[i - 1], points[i]], width, body);
      stroke([points[i - 1], points[i]], width * 0.35, light, 0.55);
    }
    points.slice(0, -1).forEach(([x, y]) => disc(x, y, 0.62 * thick, colour("--surface"), body));
    const hand = points[points.length - 1];
    if (payload) load(hand, thick, colour);
    disc(...hand, 0.5 * thick, colour("--accent"), colour("--surface"));
  }

  function disc(x, y, radius, inside, edge) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = inside;
    context.fill();
    context.lineWidth = 2.5;
    context.strokeStyle = edge;
    context.stroke();
  }

  function load([x, y], thick, colour) {
    const size = thick * 1.3;
    stroke([[x, y], [x, y + size]], 2, colour("--ink"));
    context.beginPath();
    context.moveTo(x - size * 0.62, y + size);
    context.lineTo(x + size * 0.62, y + size);
    context.lineTo(x + size * 0.85, y + size * 2.1);
    context.lineTo(x - size * 0.85, y + size * 2.1);
    context.closePath();
    context.fillStyle = colour("--bad");
    context.fill();
  }

  const again = () => (frame ??= requestAnimationFrame(paint));
  new ResizeObserver(again).observe(canvas);
  dark.addEventListener("change", again);
  return { add, clear };
}
