//! Tokens of a signature: those to leave out, and their text.

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// Drops attributes, doc comments among them.
pub(crate) fn without_attributes(tokens: TokenStream) -> TokenStream {
    let mut after_hash = false;
    let kept = tokens.into_iter().filter(|token| {
        let hash = matches!(token, TokenTree::Punct(punct) if punct.as_char() == '#');
        let group = std::mem::replace(&mut after_hash, hash);
        !(hash || group && matches!(token, TokenTree::Group(_)))
    });
    kept.collect()
}

/// Writes tokens the way rustfmt would, on one line.
pub(crate) fn text(tokens: TokenStream) -> String {
    let mut written = String::new();
    write(tokens, &mut written);
    let joined = [" ::", ":: ", " <", "< ", " >", " ,", " ;", "( ", " )", "& ", " :", "? ", " ]", "[ ", "# "];
    for spaced in joined {
        written = written.replace(spaced, spaced.trim());
    }
    written = written.replace(",>", ">").replace(",)", ")");
    written.trim_end().trim_end_matches(',').to_owned()
}

/// Writes tokens with a space after each that does not belong to the next.
fn write(tokens: TokenStream, text: &mut String) {
    let mut callable = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("( ", ") "),
                    Delimiter::Bracket => ("[ ", "] "),
                    Delimiter::Brace => ("{ ", "} "),
                    Delimiter::None => ("", ""),
                };
                if callable && group.delimiter() == Delimiter::Parenthesis {
                    text.truncate(text.trim_end().len());
                }
                text.push_str(open);
                write(group.stream(), text);
                text.push_str(close);
                callable = false;
            }
            TokenTree::Punct(punct) => {
                text.push(punct.as_char());
                if punct.spacing() == Spacing::Alone {
                    text.push(' ');
                }
                callable = punct.as_char() == '>' && !text.ends_with("-> ");
            }
            other => {
                let word = other.to_string();
                callable =
                    !["mut", "dyn", "for", "as", "in", "const"].contains(&word.as_str()) && !text.ends_with('\'');
                text.push_str(&word);
                text.push(' ');
            }
        }
    }
}

/// Drops the `$` of a macro's variables, so that its text can be read as code. A repetition occurs once.
pub(crate) fn without_dollars(tokens: TokenStream) -> TokenStream {
    let is = |token: Option<&TokenTree>, chars: &str| match token {
        Some(TokenTree::Punct(punct)) => chars.contains(punct.as_char()),
        _ => false,
    };
    let mut kept = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let after_dollar = is(Some(&token), "$");
        match if after_dollar { tokens.next() } else { Some(token) } {
            Some(TokenTree::Group(group)) if after_dollar => {
                kept.extend(without_dollars(group.stream()));
                while !is(tokens.next().as_ref(), "*+?") && tokens.peek().is_some() {}
            }
            Some(TokenTree::Group(group)) => {
                let inner = without_dollars(group.stream());
                kept.extend([TokenTree::from(Group::new(group.delimiter(), inner))]);
            }
            other => kept.extend(other),
        }
    }
    kept
}
