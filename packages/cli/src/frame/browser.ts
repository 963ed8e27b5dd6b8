/** Opens pages in the user's browser. */
import { spawn } from "node:child_process";
import { platform } from "node:process";

/**
 * Shows a page in the browser. Without a browser it does nothing, because the address is also printed on the terminal.
 */
export function openBrowser(page: string): void {
  const [command, ...args] =
    platform === "darwin" ? ["open"] : platform === "win32" ? ["cmd", "/c", "start", ""] : ["xdg-open"];
  const child = spawn(command ?? "", [...args, page], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}
