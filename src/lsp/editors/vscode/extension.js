// Starts `pmderive lsp` for files of derived metrics.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("pmderive");
  const server = {
    command: settings.get("path"),
    args: ["lsp", ...settings.get("arguments")],
  };
  const options = {
    documentSelector: [{ language: "pmderive" }],
  };
  client = new LanguageClient("pmderive", "PCP derived metrics", server, options);
  return client.start();
};

exports.deactivate = () => client && client.stop();
