// The page: two views, and the parts of each.

import { again, setUp as setUpAnswer } from "./answer.js";
import { setUp as setUpClasses } from "./classes.js";
import { $, memory, say, tabs } from "./dom.js";
import { setUp as setUpHistory } from "./history.js";
import { current, setUp as setUpInputs } from "./inputs.js";
import { setUp as setUpLearners } from "./learners.js";
import { start } from "./link.js";
import { setUp as setUpNotices } from "./notices.js";
import { setUp as setUpRecoding } from "./recoding.js";
import { enter, leave, setUp as setUpRobot } from "./robot.js";
import { store } from "./store.js";
import { setUp as setUpTeach, show as showTeach, teachAll } from "./teach.js";

const TITLES = { teach: "Teach · imparo", robot: "Robot arm · imparo" };

function setUpViews() {
  const select = tabs($(".views"), (tab) => {
    location.hash = tab.dataset.view;
  });
  const show = () => {
    const view = location.hash.slice(1) || "teach";
    if (!(view in TITLES)) return;
    select($(`[data-view="${view}"]`));
    document.title = TITLES[view];
    memory.set("view", view);
    if (view === "robot") {
      current().stop();
      enter();
    } else {
      leave();
      current().resume();
    }
    store.tell("view");
    again();
  };
  addEventListener("hashchange", show);
  $(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash says which view is open
    $("#main").focus();
  });
  const last = memory.get("view");
  if (!(location.hash.slice(1) in TITLES)) window.history.replaceState(null, "", `#${last in TITLES ? last : "teach"}`);
  show();
}

store.on("state choose", () => document.body.toggleAttribute("data-known", Boolean(store.state?.n_seen)));
store.on("about", () => say($("#version"), store.about?.version ?? ""));
setUpNotices();
setUpInputs(() => {
  showTeach();
  again();
}, teachAll);
setUpTeach();
setUpAnswer();
setUpClasses();
setUpRecoding();
setUpHistory();
setUpLearners();
setUpRobot();
setUpViews();
start();
