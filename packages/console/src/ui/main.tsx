/** Begins: signs in by the address if it carries a token, asks who is here, and draws. */
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/pages.css";
import { render } from "preact";
import { App } from "./app.js";
import { signIn } from "./pages/sign-in.js";
import { refreshSession } from "./requests.js";
import { listenToHistory, parseRoute, route } from "./route.js";

/** A token in the address is exchanged at once, and taken out of it whatever comes of that, so that no history keeps it. */
async function signInByAddress(): Promise<string | undefined> {
  const [, token] = /^#token=(.+)$/.exec(location.hash) ?? [];
  if (token === undefined) return undefined;
  history.replaceState(null, "", "#/locks");
  route.set(parseRoute(location.hash));
  try {
    await signIn({ token: decodeURIComponent(token) });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function begin(root: HTMLElement): Promise<void> {
  listenToHistory();
  const trouble = await signInByAddress();
  await refreshSession().catch(() => undefined);
  render(<App trouble={trouble} />, root);
  // Pasted into a tab that is open already, an address with a token loads nothing anew.
  const again = async (): Promise<void> => {
    const problem = await signInByAddress();
    if (problem !== undefined) render(<App key={problem} trouble={problem} />, root);
  };
  addEventListener("hashchange", () => void again());
}

const root = document.getElementById("app");
if (root !== null) void begin(root);
