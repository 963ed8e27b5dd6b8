/**
 * Makes control characters in untrusted text (names, labels, hosts) visible, including those that change the writing
 * direction. A label must not move the cursor, start a new line or imitate another label.
 */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu, (character) => {
    const code = character.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
