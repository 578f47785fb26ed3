// Everything that a page does by itself. Without it, each page works as it is.
import { startClock } from "./clock.js";
import { startKeys } from "./keys.js";
import { startLogs, lookAtLogs } from "./log.js";
import { startTheme } from "./switch.js";
import { startUpdates } from "./updates.js";

startTheme();
startClock();
startKeys();
startLogs();
startUpdates(lookAtLogs);
