//! Files that cannot be read or used: the text of each error, and that the old policy stays in force.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use reattempt_policy_file::PolicyFileOptions;

use crate::support::{Folder, Ledger, client, get, load};

/// Returns the text of the error of loading a file, without the folder's name.
fn error(folder: &Folder, file: &Path) -> String {
    let error = PolicyFileOptions::new().unwatched().load(file).unwrap_err();
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

/// Replaces the policy file, and expects that this is reported and changes nothing.
async fn is_refused(change: impl FnOnce(&Folder), expected: &str) {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\nmax_attempts = 2\nbudget = \"none\"\n");
    let (file, events) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    change(&folder);
    for _ in 0..3 {
        file.reload().unwrap_err();
    }
    assert_eq!(events.take(), [format!("the policy file is not in force, and the former policies stay:\n{expected}")]);
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2, "{expected}");
    assert_eq!(error(&folder, &folder.file()), expected, "at the start, too");
    let _ = fs::remove_file(folder.file());
    let _ = fs::remove_dir(folder.file());
    folder.write("[default]\nmax_attempts = 4\nbudget = \"none\"\n");
    file.reload().unwrap();
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 4, "a good file is in force again");
}

#[tokio::test(start_paused = true)]
async fn file_disappears_old_policy_stays() {
    let gone = |folder: &Folder| fs::remove_file(folder.file()).unwrap();
    is_refused(gone, "p.toml: cannot be read: No such file or directory (os error 2)").await;
}

#[tokio::test(start_paused = true)]
async fn empty_file_is_refused() {
    is_refused(|folder| folder.write(""), "p.toml: is empty").await;
    is_refused(|folder| folder.write("\u{feff} \r\n\n"), "p.toml: is empty").await;
}

#[tokio::test(start_paused = true)]
async fn ten_megabytes_are_refused() {
    let expected = "p.toml: is longer than 1 MiB (1048576 bytes)";
    is_refused(|folder| folder.write("# \n".repeat(3_500_000)), expected).await;
    // The longest file that is read.
    let folder = Folder::new();
    folder.write(format!("[default]\n{}", "#".repeat(1024 * 1024 - 10)));
    load(&folder);
}

/// A megabyte of mistakes ends in a short error in a short time.
#[tokio::test(start_paused = true)]
async fn many_mistakes_are_cut() {
    let folder = Folder::new();
    folder.write((0..60_000).map(|number| format!("k{number} = 1\n")).collect::<String>());
    let text = error(&folder, &folder.file());
    assert!(text.ends_with("\np.toml: and 59950 more problems"), "{}", text.len());
    assert_eq!(text.lines().count(), 51);
    folder.write("[".repeat(1_000_000));
    assert!(error(&folder, &folder.file()).len() < 20_000);
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_refused() {
    let too_deep = "p.toml:2: cannot recurse further; max recursion depth met";
    let closed = |open: &str, close: &str| format!("[a]\nb = {}1{}\n", open.repeat(100_000), close.repeat(100_000));
    is_refused(|folder| folder.write(closed("[", "]")), too_deep).await;
    is_refused(|folder| folder.write(closed("{c=", "}")), too_deep).await;
    let expected = format!("{too_deep}\np.toml:2: unclosed array, expected `]`");
    is_refused(|folder| folder.write(format!("[a]\nb = {}", "[".repeat(100_000))), &expected).await;
    let folder = Folder::new();
    let path = folder.path().join("p.json");
    for (text, expected) in [
        (
            format!("{{\n\"a\": {}1{} }}", "[".repeat(50), "]".repeat(50)),
            "p.json:2: a is nested more than 16 levels deep",
        ),
        (
            format!("{{\n\"a\": {}1{} }}", "[".repeat(100_000), "]".repeat(100_000)),
            "p.json:2: a is nested more than 16 levels deep",
        ),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(error(&folder, &path), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn not_text_is_refused() {
    is_refused(|folder| folder.write(b"[a]\n\nbase = \"\xff\"\n"), "p.toml:3: is not UTF-8").await;
}

#[tokio::test(start_paused = true)]
async fn folder_or_device_is_refused() {
    let folder = |folder: &Folder| {
        fs::remove_file(folder.file()).unwrap();
        fs::create_dir(folder.file()).unwrap();
    };
    is_refused(folder, "p.toml: is not a file").await;
    let device = |folder: &Folder| {
        fs::remove_file(folder.file()).unwrap();
        symlink("/dev/zero", folder.file()).unwrap();
    };
    is_refused(device, "p.toml: is not a file").await;
}

/// Opening a pipe without a writer would wait for ever.
#[tokio::test(start_paused = true)]
async fn pipe_is_not_opened() {
    let pipe = |folder: &Folder| {
        fs::remove_file(folder.file()).unwrap();
        let made = Command::new("mkfifo").arg(folder.file()).status().unwrap();
        assert!(made.success());
    };
    is_refused(pipe, "p.toml: is not a file").await;
}

/// Links are followed, as in mounted volumes, whose links are swapped. One to nothing or to itself is refused.
#[tokio::test(start_paused = true)]
async fn links_are_followed() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let policy = |attempts: u32| format!("[default]\nmax_attempts = {attempts}\nbudget = \"none\"\n");
    for attempts in [2, 4] {
        fs::write(folder.path().join(format!("{attempts}.toml")), policy(attempts)).unwrap();
    }
    symlink(folder.path().join("2.toml"), folder.file()).unwrap();
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    let swap = folder.path().join("swap");
    symlink(folder.path().join("4.toml"), &swap).unwrap();
    fs::rename(&swap, folder.file()).unwrap();
    file.reload().unwrap();
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 4);

    let to = |target: &'static str| {
        move |folder: &Folder| {
            fs::remove_file(folder.file()).unwrap();
            symlink(folder.path().join(target), folder.file()).unwrap();
        }
    };
    is_refused(to("none"), "p.toml: cannot be read: No such file or directory (os error 2)").await;
    is_refused(to("p.toml"), "p.toml: cannot be read: Too many levels of symbolic links (os error 40)").await;
}

/// A file that loses its permissions. The superuser may read it, so then a child process without privileges reads it.
#[test]
fn unreadable_file_is_refused() {
    const AS_NOBODY: &str = "REATTEMPT_UNREADABLE";
    const EXPECTED: &str = "p.toml: cannot be read: Permission denied (os error 13)";
    let loses_permissions = |path: &Path| {
        let expected = format!("{}/{EXPECTED}", path.parent().unwrap().display());
        let file = PolicyFileOptions::new().unwatched().load(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::read(path).is_ok() {
            return false;
        }
        assert_eq!(file.reload().unwrap_err().to_string(), expected);
        assert_eq!(file.names(), ["default"], "the former policy stays");
        assert_eq!(PolicyFileOptions::new().unwatched().load(path).unwrap_err().to_string(), expected);
        true
    };
    if let Some(path) = std::env::var_os(AS_NOBODY) {
        assert!(loses_permissions(Path::new(&path)));
        return;
    }
    let folder = Folder::new();
    folder.write("[default]\n");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if loses_permissions(&folder.file()) {
        return;
    }
    fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(folder.file(), Some(65534), None).unwrap();
    // A copy of this test that any user may run.
    let program = folder.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut child = Command::new(&program);
    child.args(["--exact", "bad_files::unreadable_file_is_refused"]).env(AS_NOBODY, folder.file());
    std::os::unix::process::CommandExt::uid(&mut child, 65534);
    let output = child.current_dir("/").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// The format follows from the name.
#[test]
fn ending_decides_the_format() {
    let folder = Folder::new();
    let path = folder.path().join("p.JSON");
    fs::write(&path, "{ \"default\": { \"max_attempts\": 2 } }").unwrap();
    PolicyFileOptions::new().unwatched().load(&path).unwrap();
    fs::write(&path, "[default]\n").unwrap();
    assert_eq!(error(&folder, &path), "p.JSON:1: expected value");
}

/// A guard that would refuse every call is an error with its line.
// field 36
#[test]
fn guard_that_admits_nothing_is_refused() {
    for (word, key) in [
        ("rate-limit:rate=0", "rate"),
        ("rate-limit:burst=0", "burst"),
        ("rate-limit:rate=0.5,burst=0", "burst"),
        ("bulkhead:limit=0", "limit"),
    ] {
        let folder = Folder::new();
        folder.write(format!("[default]\nguards = [\"{word}\"]\n"));
        let text = error(&folder, &folder.file());
        let reason = "must be above 0, because the guard would refuse every call";
        assert_eq!(text, format!("p.toml:2: default.guards has \"{word}\": {key} {reason}"));
    }
    for word in ["rate-limit:rate=0.5", "bulkhead:limit=1"] {
        let folder = Folder::new();
        folder.write(format!("[default]\nguards = [\"{word}\"]\n"));
        load(&folder);
    }
}
