//! Requests of the client: some are answered at once, the others go to a thread.

use std::time::Instant;

use lsp_server::{ErrorCode, Request, RequestId};
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentSymbolRequest, Formatting, GotoDefinition, HoverRequest,
    Initialize, PrepareRenameRequest, RangeFormatting, References, Rename, Request as _,
    SemanticTokensFullRequest, Shutdown, SignatureHelpRequest, WorkspaceSymbolRequest,
};
use lsp_types::{
    ParameterInformation, ParameterLabel, SignatureHelp, SignatureInformation,
    TextDocumentPositionParams, Uri,
};
use serde_json::Value;

use super::{MainLoop, PATIENCE, PendingKind, PendingRequest, Text};
use crate::functions::signature;
use crate::lsp::completion::{Vocabulary, completions};
use crate::lsp::cursor::{Within, cursor};
use crate::lsp::positions::number;
use crate::lsp::text_thread::{Task, Wish, is_settings};

impl MainLoop<'_> {
    pub(super) fn request(&mut self, request: Request) {
        let id = request.id.clone();
        if self.is_shut_down {
            return self.refuse(id, ErrorCode::InvalidRequest, "the server is shut down");
        }
        if let Err(error) = self.take(request) {
            self.refuse(id, ErrorCode::InvalidParams, error.to_string());
        }
    }

    /// Answers a request, or passes it to a thread.
    ///
    /// # Errors
    /// Its parameters are wrong.
    fn take(&mut self, request: Request) -> serde_json::Result<()> {
        let Request { id, method, params } = request;
        match &*method {
            Shutdown::METHOD => {
                self.is_shut_down = true;
                self.answer(id, ());
            }
            Completion::METHOD => {
                self.complete(id, read::<Completion>(params)?.text_document_position);
            }
            Initialize::METHOD => {
                self.refuse(id, ErrorCode::InvalidRequest, "`initialize` was said before");
            }
            WorkspaceSymbolRequest::METHOD => {
                let query = read::<WorkspaceSymbolRequest>(params)?.query;
                self.wait(id.clone(), PendingKind::Other);
                self.tell(Task::Symbols(id, query));
            }
            SignatureHelpRequest::METHOD => {
                let parameters = read::<SignatureHelpRequest>(params)?;
                let help = self.signature(&parameters.text_document_position_params);
                self.answer(id, help);
            }
            _ => match self.wish_of(&method, params)? {
                Some((uri, wish)) => self.wish(id, uri, wish),
                None => {
                    let words = format!("this server does not know `{method}`");
                    self.refuse(id, ErrorCode::MethodNotFound, words);
                }
            },
        }
        Ok(())
    }

    /// The wish behind a request, and its text. `None` if the method is unknown.
    ///
    /// # Errors
    /// Its parameters are wrong.
    fn wish_of(&self, method: &str, params: Value) -> serde_json::Result<Option<(Uri, Wish)>> {
        let (document, wish) = match method {
            HoverRequest::METHOD => {
                let at = read::<HoverRequest>(params)?.text_document_position_params;
                (at.text_document, Wish::Hover(at.position))
            }
            GotoDefinition::METHOD => {
                let at = read::<GotoDefinition>(params)?.text_document_position_params;
                (at.text_document, Wish::Definition(at.position))
            }
            References::METHOD => {
                let parameters = read::<References>(params)?;
                let at = parameters.text_document_position;
                let wish = Wish::References(at.position, parameters.context.include_declaration);
                (at.text_document, wish)
            }
            PrepareRenameRequest::METHOD => {
                let at = read::<PrepareRenameRequest>(params)?;
                (at.text_document, Wish::PrepareRename(at.position))
            }
            Rename::METHOD => {
                let parameters = read::<Rename>(params)?;
                let at = parameters.text_document_position;
                let wish = Wish::Rename(at.position, parameters.new_name, self.metrics.clone());
                (at.text_document, wish)
            }
            DocumentSymbolRequest::METHOD => {
                (read::<DocumentSymbolRequest>(params)?.text_document, Wish::Symbols)
            }
            Formatting::METHOD => (read::<Formatting>(params)?.text_document, Wish::Formatting),
            RangeFormatting::METHOD => {
                let parameters = read::<RangeFormatting>(params)?;
                (parameters.text_document, Wish::RangeFormatting(parameters.range))
            }
            SemanticTokensFullRequest::METHOD => {
                (read::<SemanticTokensFullRequest>(params)?.text_document, Wish::Tokens)
            }
            CodeActionRequest::METHOD => {
                let parameters = read::<CodeActionRequest>(params)?;
                let (range, only) = (parameters.range, parameters.context.only);
                (parameters.text_document, Wish::Actions { range, only, checked: None })
            }
            _ => return Ok(None),
        };
        Ok(Some((document.uri, wish)))
    }

    /// Passes a wish to a thread.
    pub(super) fn wish(&mut self, id: RequestId, uri: Uri, wish: Wish) {
        let kind = match &wish {
            Wish::Hover(position) => PendingKind::Hover(uri.clone(), *position),
            _ => PendingKind::Other,
        };
        self.wait(id.clone(), kind);
        match wish {
            // Files of settings are not checked.
            Wish::Actions { .. }
                if !is_settings(&uri)
                    && let Some(text) = self.texts.get_mut(uri.as_str()) =>
            {
                text.edits_asked.push((id, wish));
                self.answer_edits(&uri);
            }
            _ => self.tell(Task::Ask(id, uri, wish)),
        }
    }

    /// Answers requests for edits if the newest state of the text is checked.
    pub(super) fn answer_edits(&mut self, uri: &Uri) {
        let Some(text) = self.texts.get_mut(uri.as_str()).filter(|text| text.is_checked()) else {
            return;
        };
        let found = text.checked.clone();
        for (id, mut wish) in std::mem::take(&mut text.edits_asked) {
            if let Wish::Actions { checked, .. } = &mut wish {
                checked.clone_from(&found);
            }
            self.tell(Task::Ask(id, uri.clone(), wish));
        }
    }

    /// Notes that a request is in progress in a thread.
    fn wait(&mut self, id: RequestId, kind: PendingKind) {
        let needs_source = !matches!(kind, PendingKind::Other);
        let due = needs_source.then(|| Instant::now() + PATIENCE);
        self.waiting.insert(id, PendingRequest { kind, due });
    }

    fn complete(&mut self, id: RequestId, at: TextDocumentPositionParams) {
        let uri = at.text_document.uri;
        let Some(open) = self.texts.get(uri.as_str()) else { return self.answer(id, ()) };
        let Text { text, lines, read, .. } = open;
        let offset = lines.offset(text, at.position);
        let cursor = cursor(text, offset);
        let typed = cursor.within.typed();
        // The range of a completion is within a line.
        let in_line = typed.rsplit(['\r', '\n']).next().unwrap_or_default();
        let range = lines.range(text, offset - in_line.len()..offset);
        if let Within::Instance { operand, typed } = cursor.within {
            let wish = Wish::Instances(operand.to_owned());
            let kind = PendingKind::Instances(typed.to_owned(), range);
            self.wait(id.clone(), kind);
            return self.tell(Task::Ask(id, uri, wish));
        }
        let file = read.as_ref().and_then(|read| read.settings.metadata.as_ref());
        let metrics = self.metrics.of(file);
        let vocabulary = Vocabulary { metrics: metrics.as_deref(), read: read.as_deref() };
        self.answer(id, completions(&cursor, range, &vocabulary));
    }

    fn signature(&self, at: &TextDocumentPositionParams) -> Option<SignatureHelp> {
        let Text { text, lines, .. } = self.texts.get(at.text_document.uri.as_str())?;
        let call = cursor(text, lines.offset(text, at.position)).call?;
        let function = signature::named(call.name)?;
        let arguments = function.arguments();
        let argument = |text: &&str| ParameterInformation {
            label: ParameterLabel::Simple((*text).to_owned()),
            documentation: None,
        };
        // Keyword arguments come in any number and order.
        let last = arguments.len().saturating_sub(1);
        let information = SignatureInformation {
            label: function.usage.to_owned(),
            documentation: Some(lsp_types::Documentation::String(function.words.to_owned())),
            parameters: Some(arguments.iter().map(argument).collect()),
            active_parameter: Some(number(call.argument.min(last))),
        };
        let signatures = vec![information];
        Some(SignatureHelp { signatures, active_signature: Some(0), active_parameter: None })
    }
}

/// Parses the parameters of a request.
fn read<R: lsp_types::request::Request>(params: Value) -> serde_json::Result<R::Params> {
    serde_json::from_value(params)
}
