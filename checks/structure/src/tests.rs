//! Tests of each rule on small planted sources.

use crate::graph::graphs;
use crate::imports::references;
use crate::modules::Modules;
use crate::report::{Rule, Violation, compare, count, list, parse_known, shorter};
use crate::rules::SHELLS;
use crate::source::{Sources, parse_all};
use crate::{api, costs, cycles, limits, misplaced, names, observers, oldest, rules, shells, text};

fn sources(files: &[(&str, &str)]) -> Sources {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    parse_all(files.collect()).unwrap()
}

fn modules(files: &[(&str, &str)]) -> Modules {
    Modules::of_crate(&mut sources(files), "src/lib.rs").unwrap()
}

/// The module `a`, and `b`, which imports it.
fn beside_b(root: &str, a: &str) -> Modules {
    let root = format!("mod a;\nmod b;\n{root}");
    let b = "pub use crate::a::A;\npub struct B;\npub trait T {}\npub mod inner { pub struct C; }";
    modules(&[("src/lib.rs", &root), ("src/a.rs", a), ("src/b.rs", b)])
}

#[test]
fn each_form_of_path_closes_a_cycle() {
    let forms = [
        ("import", "use crate::b::B;"),
        ("import of the module", "use crate::b;"),
        ("renamed", "use crate::b as other;\nfn f() { other::f() }"),
        ("renamed root", "use crate as root;\nfn f() { root::b::f() }"),
        ("grouped", "use crate::{b::{inner::C}, other};"),
        ("grouped self", "use crate::b::{self};"),
        ("glob", "use crate::b::*;"),
        ("glob of the root", "use crate::*;\nstruct A(b::B);"),
        ("super", "use super::b::B;"),
        ("self and super", "use self::super::b::B;"),
        ("super in an inline module", "mod inner { fn f() { super::super::b::f() } }"),
        ("inside a function", "fn f() { use crate::b::B; }"),
        ("renamed inside a function", "fn f() { use crate as root; root::b::f() }"),
        ("inside a closure", "const F: fn() = || { use super::b::f; };"),
        ("inline", "fn f() { crate::b::f() }"),
        ("pattern", "fn f() { if let crate::b::B = g() {} }"),
        ("signature", "fn f(b: &crate::b::B) {}"),
        ("field", "struct A { b: Vec<crate::b::B> }"),
        ("bound", "struct A<T>(T) where T: crate::b::T;"),
        ("qualified", "type X = <u8 as crate::b::T>::X;"),
        ("impl", "impl crate::b::T for u8 {}"),
        ("hidden", "#[doc(hidden)]\npub fn f() -> super::b::B {}"),
        ("other feature", "#[cfg(feature = \"x\")]\nuse crate::b::B;"),
        ("re-export", "pub use crate::b::B;"),
        ("macro around items", "pin_project! { pub struct A { #[pin] b: crate::b::B } }"),
        ("macro call", "fn f() { assert!(matches!(g(), Some(crate::b::B))) }"),
        ("macro by path", "fn f() { crate::b::m!() }"),
        ("macro definition", "macro_rules! m { () => { $crate::b::B }; }"),
    ];
    for (form, a) in forms {
        assert_eq!(cycles(&beside_b("pub struct A;", a)).len(), 2, "{form}: {a}");
    }
}

/// The root's own re-exports are no imports, but their destinations count.
#[test]
fn root_reexport_counts_as_its_definer() {
    let root = "pub use a::A;\npub use b::{B, inner as deep};\npub(crate) use b::*;\nfn f() { a::f() }";
    for a in ["use crate::B;", "use crate::deep::C;", "fn f() -> crate::T {}", "use super::{B as X};"] {
        assert_eq!(cycles(&beside_b(root, a)).len(), 2, "{a}");
    }
    assert!(cycles(&beside_b(root, "use crate::A as Own;")).is_empty());
}

#[test]
fn item_of_the_root_makes_the_root_a_module() {
    let root = "use b::B;\npub struct Own(B);";
    assert_eq!(cycles(&beside_b(root, "use crate::Own;")).len(), 3);
    assert!(cycles(&beside_b(root, "use crate as root;\nfn f() { use super::*; }")).is_empty());
}

#[test]
fn other_crates_and_tests_close_no_cycle() {
    let harmless = [
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(all(test, feature = \"x\"))]\nuse crate::b::B;",
        "#[cfg(test)]\nfn f() { crate::b::f() }",
        "impl A { #[cfg(test)] fn f() { crate::b::f() } }",
        "use ::b::B;",
        "use other::b::B;",
        "fn f() { let b = 1; b.f(); g!(b) }",
        "fn f() { println!(\"crate::b::f\") } // crate::b::f",
        "/// [`crate::b::B`]\nfn f() {}",
        "pub(in crate::b) fn f() {}",
    ];
    for a in harmless {
        assert!(cycles(&beside_b("", a)).is_empty(), "{a}");
    }
}

#[test]
fn modules_in_files_of_both_forms_are_found() {
    let modules = modules(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a/mod.rs", "mod x; mod y;"),
        ("src/a/x.rs", "use super::y::Y;"),
        ("src/a/y.rs", "mod z;"),
        ("src/a/y/z.rs", "use crate::a::x::X;"),
        ("src/b.rs", "use crate::a::y::Y;"),
    ]);
    let found = cycles(&modules);
    assert_eq!(found[0].file, "src/a/x.rs");
    assert_eq!((found[1].file.as_str(), found[1].line, found.len()), ("src/a/y/z.rs", 1, 2));
    assert_eq!(graphs(&references(&modules))[&vec![]].edges.len(), 1);
}

#[test]
fn methods_made_by_a_macro_are_listed() {
    let modules = modules(&[
        ("src/lib.rs", "mod setters; pub struct A;\nimpl A { setters!(inner); send!(S); other!(); }"),
        (
            "src/setters.rs",
            "macro_rules! setters { ($get:ident) => { pub fn set(self) -> Self { self.$get() } } }\n\
            macro_rules! send { ($($s:ident),*) => { pub fn send(&self) -> impl Sized + use<$($s,)* B> { 1 } } }",
        ),
    ]);
    let list = api::list(&modules, "krate");
    let methods: Vec<_> = list.lines().filter(|line| line.contains("impl")).collect();
    let send = "krate::A: impl A { fn send(&self) -> impl Sized + use<s, B> }";
    let (set, other) = ("krate::A: impl A { fn set(self) -> Self }", "krate::A: impl A { macro other }");
    assert_eq!(methods, [send, set, other]);
}

#[test]
fn import_of_a_module_above_is_found() {
    let modules = modules(&[
        ("src/lib.rs", "mod call; mod operation; mod policy; mod protocol; mod retry;"),
        ("src/call.rs", "use crate::retry::R;"),
        ("src/operation.rs", "use crate::{call::C, policy::P, protocol::Q};\nuse crate::retry::R;"),
        ("src/policy.rs", "use crate::protocol::Q;"),
        ("src/protocol.rs", ""),
        ("src/retry.rs", "use crate::protocol::Q;"),
    ]);
    let found = misplaced(&modules);
    let places: Vec<_> = found.iter().map(|it| (it.file.as_str(), it.line)).collect();
    assert_eq!(places, [("src/call.rs", 1), ("src/operation.rs", 1), ("src/operation.rs", 2)]);
}

#[test]
fn module_without_a_layer_is_found() {
    let modules = modules(&[
        ("src/lib.rs", "mod call; mod newcomer; mod send; pub struct OfTheRoot;"),
        ("src/call.rs", "use crate::send::send;\nuse crate::newcomer::N;\nuse crate::OfTheRoot;"),
        ("src/newcomer.rs", "use crate::call::C;"),
        ("src/send.rs", ""),
    ]);
    let found = misplaced(&modules);
    let mut places: Vec<_> = found.iter().map(|it| (it.file.as_str(), it.line)).collect();
    places.sort_unstable();
    let expected = [("src/call.rs", 1), ("src/call.rs", 2), ("src/call.rs", 3), ("src/newcomer.rs", 1)];
    assert_eq!(places, expected);
}

/// One file may be two modules, which have their own imports.
#[test]
fn file_with_a_path_is_a_module_twice() {
    let modules = modules(&[
        ("src/lib.rs", "mod fork; mod chain;"),
        ("src/fork.rs", "#[path = \"chain.rs\"] mod chain;"),
        ("src/chain.rs", "pub struct C;"),
    ]);
    let shared = modules.0.iter().filter(|(_, module)| module.file == "src/chain.rs").count();
    assert_eq!(shared, 2);
}

#[test]
fn missing_file_of_a_module_is_an_error() {
    let error = Modules::of_crate(&mut sources(&[("src/lib.rs", "mod a;")]), "src/lib.rs");
    assert!(error.is_err_and(|text| text.starts_with("src/lib.rs: no file for `mod a`")));
}

fn lines_of(rule: Rule, path: &str, text: &str) -> Vec<usize> {
    let found = text::violations(&sources(&[(path, text)]));
    found.iter().filter(|it| it.rule == rule).map(|it| it.line).collect()
}

#[test]
fn grpc_is_found_in_generic_modules_only() {
    let text = "/// As gRPC does.\nfn f() { x::Grpc }\n#[cfg(test)]\nmod tests { use x::Grpc; }";
    assert_eq!(lines_of(Rule::Grpc, "crates/engine/src/retry/a.rs", text), [1, 2]);
    assert!(lines_of(Rule::Grpc, "crates/engine/src/grpc/a.rs", text).is_empty());
    assert!(lines_of(Rule::Grpc, "crates/grpc/src/a.rs", text).is_empty());
}

#[test]
fn words_of_grpc_are_found_as_whole_words() {
    let text = "/// As tonic does.\n/// 429, RESOURCE_EXHAUSTED\n/// (UNAVAILABLE)\nuse tonic::Code;\n\
                /// A Service config.\nfn service_config() {}\n";
    assert_eq!(lines_of(Rule::Grpc, "crates/engine/src/a.rs", text), [1, 2, 3, 4, 5, 6]);
    let harmless = "/// Monotonic, unavailable, unknown.\nuse S::SERVICE_UNAVAILABLE;\nuse S::NOT_FOUND;";
    assert!(lines_of(Rule::Grpc, "crates/engine/src/a.rs", harmless).is_empty());
}

#[test]
fn only_tables_and_links_are_long() {
    let long = "ä".repeat(118);
    let source = format!("/// {long}\n//! | {long}\n// {long}\nf(\"{long}--\");\n// a://{long}");
    assert_eq!(lines_of(Rule::LineLength, "tests/a.rs", &source), [1, 3]);
    assert_eq!(text::page(&format!("{long}\n{long}--\n{long}---\n| {long}")).len(), 1);
}

#[test]
fn observer_is_called_by_one_function() {
    let text = "fn f() {\n observer(1);\n user_code::notify(|| observer(1));\n (self.observer)(1);\n o.on_event(1);\n}\n\
        impl O for P { fn on_event(&self) { self.0.on_event(1) } }\n#[cfg(test)]\nmod tests { fn f() { observer() } }";
    let lines = |path| observers::violations(&sources(&[(path, text)])).iter().map(|it| it.line).collect::<Vec<_>>();
    assert_eq!(lines("crates/a/src/a.rs"), [2, 4, 5]);
    assert!(lines("crates/lab/src/a.rs").is_empty() && lines("crates/a/tests/it/a.rs").is_empty());
}

#[test]
fn doc_opening_is_the_first_line_only() {
    let text = "//! Whether it is.\n\n/// A thing.\n/// What it is.\nfn f() {}\n    /// The same.\n    /// How.\n    fn g() {}\n/// Whatever.\n/// Who";
    assert_eq!(lines_of(Rule::Opening, "tests/a.rs", text), [1, 6]);
}

#[test]
fn doc_opening_is_found_in_every_form() {
    let bad = [
        "/** What it is. */\nfn f() {}",
        "/**\n * What it is.\n */\nfn f() {}",
        "/*! What it is. */",
        "#[doc = \"What it is.\"]\nfn f() {}",
        "#![doc = r#\"What it is.\"#]",
        "#[cfg_attr(x, doc = \"What it is.\")]\nfn f() {}",
        "///\n/// What it is.\nfn f() {}",
        "/// **What it is.**\nfn f() {}",
        "//! # What it is",
    ];
    for text in bad {
        assert_eq!(lines_of(Rule::Opening, "tests/a.rs", text).len(), 1, "{text}");
    }
    let good = [
        "/**\n * A thing.\n * What it is.\n */\nfn f() {}",
        "/// A thing.\n#[doc = \"What it is.\"]\nfn f() {}",
        "#[doc = \"A thing.\"]\n#[doc = \"What it is.\"]\nfn f() {}",
        "///\n/// A thing.\n/// What it is.\nfn f() {}",
        "/* What it is. */ /*** What it is. */\nfn f() {}",
        "/** A thing. */\n// What it is.\nlet doc = \"What\";",
    ];
    for text in good {
        assert!(lines_of(Rule::Opening, "tests/a.rs", text).is_empty(), "{text}");
    }
    assert_eq!(text::page_opening("a.md", "\n**What** it is.").map(|it| it.line), Some(2));
    assert!(text::page_opening("a.md", "A page.\nWhat it is.").is_none());
}

#[test]
fn test_name_is_measured_inside_macros_too() {
    let long = "x".repeat(41);
    let text = format!(
        "#[tokio::test(start_paused = true)]\nasync fn {long}() {{}}\nproptest! {{\n    #[test]\n    \
         fn {long}(x in 0..1) {{}}\n}}\nfn {long}() {{}}\n#[test]\nfn f() {{}}"
    );
    assert_eq!(lines_of(Rule::TestName, "tests/a.rs", &text), [2, 5]);
}

/// The places of types with one name in a crate of two modules, where this list explains some.
fn names_of(root: &str, a: &str, explained: &[(&str, &str, &str)]) -> Vec<String> {
    let root = format!("mod a;\n{root}");
    let crates = [("crates/x".to_owned(), modules(&[("src/lib.rs", &root), ("src/a.rs", a)]))];
    names::judged(&crates, explained).iter().map(Violation::text).collect()
}

/// Docs, aliases and tests have no types of a crate.
#[test]
fn second_type_of_a_name_is_found() {
    let root = "struct Note;\nenum Rule {}\npub struct ResponseFuture;";
    for a in ["pin_project! {\n struct Note<T> { t: T } }", "\npub enum Note {}"] {
        let found = "src/a.rs:2: type-name: `Note` is the name of a type at src/lib.rs:2, too";
        assert_eq!(names_of(root, a, &[]), [found], "{a}");
        assert!(names_of(root, a, &[("crates/x", "Note", "both are public")]).is_empty(), "{a}");
    }
    let harmless = [
        "struct PlaceNote;\nenum Note_ {}",
        "pub struct ResponseFuture;",
        "use super::Note;\ntype Rule = Note;",
        "trait Note { type Rule; }",
        "/// ```\n/// struct Note;\n/// ```\nfn f() {}",
        "#[cfg(test)]\nmod tests { struct Note; }",
        "#[cfg(test)]\nstruct Note;",
    ];
    for a in harmless {
        assert!(names_of(root, a, &[]).is_empty(), "{a}");
    }
}

#[test]
fn explained_name_of_one_type_is_found() {
    let found = names_of("struct Note;", "", &[("crates/x", "Note", "both are public")]);
    assert!(found[0].contains("remove the entry"), "{found:?}");
}

/// The places of the broken limits and of the reasons for none, and the warnings.
fn limits_of(files: &[(&str, &str)]) -> (Vec<(Rule, String, usize)>, Vec<String>) {
    let (found, warnings) = limits::violations(&sources(files));
    (found.into_iter().map(|it| (it.rule, it.file, it.line)).collect(), warnings)
}

#[test]
fn long_file_is_named_unless_it_is_a_test() {
    let text = "\n".repeat(401);
    let named = vec![(Rule::FileLength, "src/a.rs".to_owned(), 401)];
    assert_eq!(limits_of(&[("src/a.rs", &text)]), (named, vec![]));
    assert_eq!(limits_of(&[("src/a.rs", &text[1..])]).0, []);
    assert_eq!(limits_of(&[("tests/a.rs", &text)]).0, []);
}

/// The comment may stand anywhere in the file.
#[test]
fn long_file_with_a_reason_is_a_warning() {
    for (before, after) in [(0, 400), (400, 0)] {
        let reason = "// structure(file-length): one state machine\n";
        let text = format!("{}{reason}{}", "\n".repeat(before), "\n".repeat(after));
        let warning = "src/a.rs:401: file-length: 401 lines, at most 400: one state machine";
        assert_eq!(limits_of(&[("src/a.rs", &text)]), (vec![], vec![warning.to_owned()]));
    }
}

/// It is a violation of its own, so that none outlives its cause.
#[test]
fn reason_for_no_broken_limit_is_found() {
    let long = "\n".repeat(401);
    let found = |text: &str| limits_of(&[("src/a.rs", text)]).0.into_iter().map(|it| it.0);
    let reason = "// structure(file-length): one state machine\n";
    assert!(found(reason).eq([Rule::Reason]));
    for not_one in ["file-length): too short", "cycle): both need each other", "file-length) one two three"] {
        let text = format!("// structure({not_one}\n{long}");
        assert!(found(&text).eq([Rule::FileLength, Rule::Reason]), "{not_one}");
    }
}

/// The places of the copies in two files.
fn copies(a: (&str, &str), b: (&str, &str)) -> Vec<(String, usize)> {
    let found = limits_of(&[a, b]).0;
    let copies = found.into_iter().filter(|it| it.0 == Rule::Copy);
    copies.map(|(_, file, line)| (file, line)).collect()
}

/// A reason stands in the copy or on the line above it, and does not hide the lines around it.
#[test]
fn copy_with_a_reason_is_a_warning() {
    let lines: Vec<_> = (0..14).map(|number| format!("const C{number}: u8 = 0;")).collect();
    let reason = "// structure(copy): a macro would hide it".to_owned();
    for (place, warns) in [(0, false), (1, true), (2, true), (8, true), (14, true), (15, false)] {
        let mut b = [vec!["fn f() {}".into()], lines.clone(), vec!["fn g() {}".into()]].concat();
        b.insert(place, reason.clone());
        let (found, warnings) = limits_of(&[("a/src/a.rs", &lines.join("\n")), ("b/src/b.rs", &b.join("\n"))]);
        let rules: Vec<_> = found.iter().map(|it| it.0).collect();
        if warns {
            assert_eq!((rules, warnings.len()), (vec![], 1), "{place}");
            assert!(warnings[0].ends_with("as in a/src/a.rs:1: a macro would hide it"), "{place}");
        } else {
            assert_eq!((rules, warnings.len()), (vec![Rule::Copy, Rule::Reason], 0), "{place}");
        }
    }
}

/// A file with these functions, of which those with a `!` are methods of a trait.
fn file_of(names: &str) -> String {
    let of = |name: &str| match name.strip_suffix('!') {
        Some(name) => format!("impl T for A {{ fn {name}(&self) {{}} }}\n"),
        None => format!("impl A {{ pub const fn {name}() {{}} }}\n"),
    };
    names.split(' ').map(of).collect()
}

/// The texts of the shells in files with these functions, and with these entries in the list.
fn shells_of(files: &[(&str, &str)], explained: &[(&[&str], &str)]) -> Vec<String> {
    let texts: Vec<_> = files.iter().map(|(path, names)| (*path, file_of(names))).collect();
    let files: Vec<_> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let found = shells::judged(&sources(&files), explained);
    found.into_iter().map(|it| format!("{}: {}", it.file, it.what)).collect()
}

#[test]
fn shell_in_three_files_is_found() {
    let three = [
        ("a.rs", "new queue max admit! end! a"),
        ("b.rs", "b queue max admit! end! retire"),
        ("c.rs", "new queue max admit! end! c"),
    ];
    let text = "a.rs: `queue, max, admit, end` in 3 files: a.rs:2 b.rs:2 c.rs:2";
    assert_eq!(shells_of(&three, &[]), [text]);
    assert!(shells_of(&three[..2], &[]).is_empty());
    let text = file_of(three[0].1);
    let root = ("src/lib.rs", "mod a; mod b;\n#[cfg(test)]\nmod c;");
    let file = |path| (path, text.as_str());
    let in_test = [root, file("src/a.rs"), file("src/b.rs"), file("src/c.rs")];
    assert!(shells::judged(&sources(&in_test), &[]).is_empty());
    let other_order = [three[0], three[1], ("c.rs", "max queue admit! end!")];
    assert!(shells_of(&other_order, &[]).is_empty());
}

#[test]
fn shell_is_one_text_however_long() {
    let names = "new queue max admit! end! fmt!";
    let four = ["a.rs", "b.rs", "c.rs", "d.rs"].map(|path| (path, names));
    let found = shells_of(&four, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`new, queue, max, admit, end, fmt` in 4 files"), "{found:?}");
}

#[test]
fn methods_of_traits_alone_are_no_shell() {
    let three = ["a.rs", "b.rs", "c.rs"].map(|path| (path, "admit! end! renew! check!"));
    assert!(shells_of(&three, &[]).is_empty());
    let three = three.map(|(path, names)| (path, format!("new {names}")));
    let three = three.each_ref().map(|(path, names)| (*path, names.as_str()));
    assert_eq!(shells_of(&three, &[]).len(), 1);
}

#[test]
fn explained_shell_is_no_violation() {
    let names = "new queue admit! end!";
    let three = ["a.rs", "b.rs", "c.rs"].map(|path| (path, names));
    let entry: &[(&[&str], &str)] = &[(&["a.rs", "b.rs", "c.rs"], "why")];
    assert!(shells_of(&three, entry).is_empty());
    let fourth = [three.as_slice(), &[("d.rs", names)]].concat();
    assert_eq!(shells_of(&fourth, entry).len(), 2, "a new file, and an entry without a shell");
    assert!(shells_of(&three[..2], entry)[0].contains("no shell is left in a.rs b.rs c.rs"));
}

#[test]
fn each_explained_shell_has_a_reason() {
    assert!(SHELLS.iter().all(|(files, why)| files.len() >= 3 && why.split(' ').count() > 4));
}

#[test]
fn twelve_equal_lines_are_one_copy() {
    let lines =
        |count: usize, gap| -> String { (0..count).map(|number| format!("const C{number}: u8 = 0;\n{gap}")).collect() };
    let in_b = |b: &str, count| copies(("a/src/a.rs", &lines(count, "")), ("b/src/b.rs", b));
    let b = format!("fn f() {{}}\n{}", lines(14, "\n  \n"));
    assert_eq!(in_b(&b, 14), [("b/src/b.rs".to_owned(), 2)]);
    assert!(in_b(&b, 11).is_empty());
    assert!(in_b(&lines(14, "// why\n"), 14).is_empty());
    assert!(in_b(&format!("#[cfg(test)]\nmod tests {{\n{b}}}"), 14).is_empty());
}

#[test]
fn comments_braces_blank_lines_are_equal() {
    let text = "/// A thing.\nmod m {\nmod n {\n// why\n}\n}\n".repeat(2);
    let places = ["a/benches/b.rs", "b/src/b.rs", "examples/b.rs", "fuzz/b.rs", "build.rs"];
    for path in places {
        assert_eq!(copies(("a/a.rs", &text), (path, &text)), [(path.to_owned(), 1)]);
    }
    assert!(copies(("a/a.rs", &text), ("tests/b.rs", &text)).is_empty());
    let blank = "fn f() {}\n\nfn g() {}\n\n".repeat(3);
    assert_eq!(copies(("a/a.rs", &blank), ("b/b.rs", &blank)), [("b/b.rs".to_owned(), 1)]);
}

#[test]
fn cost_of_the_readme_equals_the_results() {
    let readme = include_str!("../../../README.md");
    let results = include_str!("../../../benches/RESULTS.md");
    let lines = |readme: &str, results: &str| -> Vec<String> {
        costs::violations(readme, results).into_iter().map(|it| it.what).collect()
    };
    let shown = "| fails once, then succeeds, request built anew | ";
    let (row, _) = readme.split_once(shown).unwrap().1.split_once('\n').unwrap();
    for (index, cell) in row.trim_end_matches('|').split('|').map(str::trim).enumerate() {
        let planted = readme.replacen(
            &format!("{shown}{row}"),
            &{
                let mut cells: Vec<_> = row.trim_end_matches('|').split('|').map(str::trim).collect();
                cells[index] = "1 of another run";
                format!("{shown}{} |", cells.join(" | "))
            },
            1,
        );
        assert!(lines(&planted, results)[0].contains(&format!("and `{cell}` in")), "{index}");
    }
    let renamed = readme.replacen(shown, "| fails twice | ", 1);
    assert_eq!(lines(&renamed, results).len(), 2);
    assert_eq!(lines(readme, "").len(), 4);
}

#[test]
fn oldest_versions_equal_the_manifest() {
    let readme = include_str!("../../../README.md");
    let manifest = include_str!("../../../Cargo.toml");
    let lines = |readme: &str, manifest: &str| -> Vec<String> {
        oldest::violations(readme, manifest).into_iter().map(|it| it.what).collect()
    };
    assert!(lines(readme, manifest).is_empty());
    // Without its first column there is no table.
    for name in &rules::OLDEST[1..] {
        let column = readme.replacen(&format!(" {name} |"), " another |", 1);
        assert_eq!(lines(&column, manifest), [format!("the table of the oldest versions has no column `{name}`")]);
    }
    let raised = manifest.replacen("tokio = { version = \"", "tokio = { version = \"9", 1);
    assert!(lines(readme, &raised)[0].starts_with("tokio: `"));
    assert_eq!(lines(readme, "").len(), rules::OLDEST.len());
}

#[test]
fn known_list_only_becomes_shorter() {
    let of = |file, count: usize| {
        let text = "/// What.\nfn f() {}\n".repeat(count);
        text::violations(&sources(&[(file, &text)]))
    };
    let two = of("src/a.rs", 2);
    let known = parse_known(&list(&count(&two))).unwrap();
    assert_eq!(known, count(&two));
    assert!(compare(&two, &known).is_empty());
    let three = of("src/a.rs", 3);
    let text = "src/a.rs:5: opening: a doc comment opens with `What.`";
    assert!(compare(&three, &known)[0].contains(text));
    assert_eq!(shorter(&three, &known), known);
    let one = of("src/a.rs", 1);
    assert!(compare(&one, &known)[0].starts_with("src/a.rs: opening: 1 now, 2 in"));
    assert_eq!(shorter(&one, &known), count(&one));
    let moved = of("src/b.rs", 2);
    assert_eq!(shorter(&moved, &known), count(&moved));
    assert_eq!(shorter(&of("src/b.rs", 3), &known), known);
    assert!(parse_known("opening src/a.rs many").is_err());
}

#[test]
fn api_lists_what_users_can_name() {
    let modules = modules(&[
        (
            "src/lib.rs",
            "mod a;\npub mod b;\npub use a::{A, Shown as Renamed};\n#[cfg(feature = \"x\")]\npub use other::X;",
        ),
        (
            "src/a.rs",
            "#[derive(Clone)]\n#[non_exhaustive]\npub struct A<T: Copy> { pub t: T, u: u8 }\npub struct Hidden;\n\
                      pub trait Shown: Send { /// Doc.\n type Out; fn f(&self) -> &'static str { \"\" } }\ntrait Private {}\n\
                      impl<T: Copy> A<T> { pub fn new(t: T) -> Self where T: Into<u8> { } fn own() {} #[doc(hidden)] pub fn h() {} }\n\
                      impl<T: Copy> Iterator for A<T> { type Item = T; }\nimpl<T: Copy> Private for A<T> {}\nimpl Shown for Hidden {}\nimpl Shown for (u8, u8) {}",
        ),
        (
            "src/b.rs",
            "pub enum E { One(u8), #[cfg(x)] Two { a: u8 } }\npub use crate::a::A as Again;\n\
                      pub const fn f<'a>(x: &'a mut [u8; 2]) -> Option<&'a (u8, u8)> {}",
        ),
    ]);
    let expected = "\
krate: mod
krate::A.t: T
krate::A: #[derive(Clone)] #[non_exhaustive] struct<T: Copy>
krate::A: impl<T: Copy> A<T> { fn new(t: T) -> Self where T: Into<u8> }
krate::A: impl<T: Copy> Iterator for A<T>
krate::A: impl<T: Copy> Iterator for A<T> { type Item = T }
krate::Renamed: impl Shown for (u8, u8)
krate::Renamed: trait { provided fn f(&self) -> &'static str }
krate::Renamed: trait { type Out }
krate::Renamed: trait: Send
krate::X: #[cfg(feature = \"x\")] use other::X
krate::b: mod
krate::b::Again: use krate::A
krate::b::E: enum
krate::b::E::One.0: u8
krate::b::E::One: variant
krate::b::E::Two.a: u8
krate::b::E::Two: #[cfg(x)] variant
krate::b::f: const fn f<'a>(x: &'a mut [u8; 2]) -> Option<&'a (u8, u8)>
";
    assert_eq!(api::list(&modules, "krate"), expected);
}
