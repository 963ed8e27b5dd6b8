/** The visitor's own browser. */
import { spawn } from "node:child_process";
import { platform } from "node:process";

/** Shows a page in it. Without one nothing happens: the address stands in the terminal anyway. */
export function openBrowser(page: string): void {
  const [command, ...args] =
    platform === "darwin" ? ["open"] : platform === "win32" ? ["cmd", "/c", "start", ""] : ["xdg-open"];
  const child = spawn(command ?? "", [...args, page], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}
