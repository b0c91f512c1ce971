//! The check of what a search finds: a file that is loaded or believed lies where this user and root alone can write,
//! all the way up. Places that a user names by a variable or an argument are not searched for, and are not checked.

use std::path::{Path, PathBuf};

/// Returns the path without links, if this user and root alone can change what lies there.
///
/// The file or the folder, and each folder above it, must be the user's or root's, and no other user may write to it. A
/// folder with the sticky bit, such as `/tmp`, may be above: others can make files there, but cannot put one in the
/// place of a folder of the user. The folder that holds the file must not be one. A group counts as the user where it
/// has no other member. Windows has no such owners, and nothing is checked there.
///
/// # Errors
/// The outermost place that another user can change, and how; or why the path cannot be read.
pub fn only_own(path: &Path) -> Result<PathBuf, String> {
    let unread = |error| format!("{} cannot be read: {error}", path.display());
    let real = path.canonicalize().map_err(unread)?;
    #[cfg(unix)]
    unix::check(&real)?;
    Ok(real)
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    unsafe extern "C" {
        /// A function of the C library, with which the standard library is linked.
        safe fn geteuid() -> u32;
    }

    const OTHERS_WRITE: u32 = 0o002;
    const GROUP_WRITES: u32 = 0o020;
    const STICKY: u32 = 0o1000;

    pub(super) fn check(real: &Path) -> Result<(), String> {
        let user = geteuid();
        let is_file = real.is_file();
        let mut places: Vec<&Path> = real.ancestors().collect();
        // Names are looked up in the innermost folder.
        let inner = places.len() - 1 - usize::from(is_file);
        places.reverse();
        for (depth, place) in places.into_iter().enumerate() {
            let shown = place.display();
            let about = fs::symlink_metadata(place)
                .map_err(|error| format!("{shown} cannot be read: {error}"))?;
            let owner = about.uid();
            if owner != user && owner != 0 {
                return Err(format!("{shown} belongs to user {owner}, and this is user {user}"));
            }
            let mode = about.mode();
            let is_sticky = mode & STICKY != 0 && depth < inner;
            if !is_sticky && others_write(place, &about, user) {
                return Err(format!(
                    "other users can write to {shown} (its mode is {:o}; `chmod go-w {shown}` would forbid it)",
                    mode & 0o7777
                ));
            }
        }
        Ok(())
    }

    fn others_write(place: &Path, about: &Metadata, user: u32) -> bool {
        let mode = about.mode();
        mode & OTHERS_WRITE != 0
            || mode & GROUP_WRITES != 0 && (has_list(place) || !is_alone(about.gid(), user))
    }

    /// Whether a list of access rights may give users more than the mode says: with such a list, the mode's bits of the
    /// group are those of all users of the list.
    fn has_list(place: &Path) -> bool {
        #[cfg(target_os = "linux")]
        {
            use rustix::io::Errno;
            let list = rustix::fs::getxattr(place, c"system.posix_acl_access", &mut [0_u8; 0][..]);
            !matches!(list, Err(Errno::NODATA | Errno::NOTSUP))
        }
        #[cfg(not(target_os = "linux"))]
        {
            _ = place;
            true
        }
    }

    /// Whether a group has no other member than the user, as the files of the system say: many systems give each user a
    /// group of its own, whose folders the group may write.
    fn is_alone(group: u32, user: u32) -> bool {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        is_alone_in(&file("/etc/passwd"), &file("/etc/group"), group, user)
    }

    pub(super) fn is_alone_in(users: &str, groups: &str, group: u32, user: u32) -> bool {
        let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let number = |fields: &[String], at: usize| fields.get(at)?.parse::<u32>().ok();
        let users: Vec<_> = users.lines().map(fields).collect();
        let of_group: Vec<_> = users.iter().filter(|u| number(u, 3) == Some(group)).collect();
        let [own] = of_group[..] else { return false };
        let mut listed = groups.lines().map(fields).filter(|g| number(g, 2) == Some(group));
        let Some(line) = listed.next().filter(|_| number(own, 2) == Some(user)) else {
            return false;
        };
        let members = line.get(3).map_or("", String::as_str).split(',');
        let others = members.filter(|name| !name.is_empty() && *name != own[0]);
        listed.next().is_none() && others.count() == 0
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is the test's own");
    }

    fn refused(path: &Path, words: &str) {
        let why = only_own(path).expect_err(words);
        assert!(why.contains(words), "{why}");
    }

    /// A place is changed at each depth, and each file below it is refused.
    #[test]
    fn what_others_can_change_is_refused_at_any_depth() {
        let above = tempfile::tempdir().expect("a folder");
        let above = above.path().canonicalize().expect("it is there");
        let [outer, inner] = [above.join("outer"), above.join("outer/inner")];
        let file = inner.join("file.so");
        fs::create_dir_all(&inner).expect("a folder");
        fs::write(&file, "").expect("a file");
        for place in [&above, &outer, &inner, &file] {
            mode(place, 0o755);
        }
        assert_eq!(only_own(&file).as_ref(), Ok(&file));
        assert_eq!(only_own(&inner).as_ref(), Ok(&inner));
        // The check is about the place behind a link.
        let link = above.join("link");
        symlink(&inner, &link).expect("a link");
        assert_eq!(only_own(&link.join("file.so")).as_ref(), Ok(&file));
        for place in [&outer, &inner, &file] {
            mode(place, 0o757);
            refused(&file, &format!("other users can write to {} ", place.display()));
            refused(&link.join("file.so"), "other users can write");
            mode(place, 0o755);
        }
        // Others can make files in a folder with the sticky bit, and cannot replace the user's.
        mode(&outer, 0o1777);
        assert_eq!(only_own(&file).as_ref(), Ok(&file));
        mode(&inner, 0o1777);
        refused(&file, &format!("other users can write to {} ", inner.display()));
        refused(&inner, "other users can write");
        mode(&inner, 0o755);
        refused(&above.join("nothing"), "cannot be read");
        // Only root can give files away.
        for place in [&outer, &inner, &file] {
            match chown(place, Some(65534), None) {
                Err(error) => return eprintln!("skipped: no file of another user: {error}"),
                Ok(()) => refused(&file, &format!("{} belongs to user 65534", place.display())),
            }
            chown(place, Some(0), None).expect("root gives it back");
        }
        // Another group may not write, also where the group has the user's number.
        chown(&outer, None, Some(65534)).expect("root gives it away");
        mode(&outer, 0o775);
        refused(&file, "other users can write");
    }

    #[test]
    fn a_group_of_one_is_the_user() {
        const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/:\neve:x:1002:100::/:\n";
        const GROUPS: &str = "root:x:0:\nusers:x:100:\nann:x:1000:ann\nlab:x:2000:ann,bob\n";
        let alone = |groups: &str, group, user| unix::is_alone_in(USERS, groups, group, user);
        assert!(alone(GROUPS, 1000, 1000) && alone(GROUPS, 0, 0));
        assert!(!alone(GROUPS, 1000, 1001), "another user's group");
        assert!(!alone(GROUPS, 100, 1001), "two users have it");
        assert!(!alone(GROUPS, 2000, 1000), "it has two members");
        assert!(!alone(&GROUPS.replace("1000:ann", "1000:ann,bob"), 1000, 1000));
        assert!(!alone("", 1000, 1000), "nothing is known of it");
    }
}
