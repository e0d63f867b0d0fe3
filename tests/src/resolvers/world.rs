//! A DNS world: the `resolv.conf` of a pod, and what servers answer to each candidate.

use std::fmt;
use std::iter::once;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fastrand::Rng;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use lab_parts::dns::{Behaviour, KUBERNETES, KUBERNETES_IP, Response};

/// The name that is looked up.
pub(super) const NAME: &str = "kubernetes.default";
/// A response after this comes before anybody gives up.
const SOON: Duration = Duration::from_millis(150);
/// One after this comes when a part of the probe's time is over, and one after that too late for it.
const LATE: [Duration; 2] = [Duration::from_millis(700), Duration::from_millis(1500)];

/// A DNS world.
#[derive(Clone, Debug)]
pub struct World {
    /// The seed that it is drawn from.
    pub(super) seed: u64,
    pub(super) search: Vec<&'static str>,
    pub(super) options: Vec<&'static str>,
    pub(super) servers: Vec<Server>,
}

/// A DNS server. It knows the cluster's API and denies all other names, but for its faults.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// Nobody listens.
    pub(super) is_closed: bool,
    /// Later ones prevail.
    pub(super) faults: Vec<Fault>,
}

/// A response that differs from a healthy server's.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The name; all if there is none.
    pub(super) name: Option<String>,
    /// The type; both if there is none.
    pub(super) family: Option<RecordType>,
    pub(super) kind: Kind,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ServFail,
    Refused,
    NotImp,
    FormErr,
    NxDomain,
    NoData,
    Lame,
    Dangling,
    Stranger,
    Drop,
    Garbage,
    Truncated,
    /// Truncated, and TCP is silent.
    TruncatedSilent,
    /// Truncated, and connections are closed.
    TruncatedClosed,
    Soon,
    /// The place in [`LATE`].
    Late(usize),
}

impl World {
    /// Draws a world.
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let random = &mut random;
        let mut search = vec![
            "shop.svc.cluster.local",
            "svc.cluster.local",
            "cluster.local",
        ];
        for company in ["apps.example.net", "corp.example"] {
            match random.u8(..8) {
                0 | 1 => search.push(company),
                2 => search.insert(0, company),
                _ => {}
            }
        }
        let mut options = vec!["timeout:1"];
        options.extend(match random.u8(..8) {
            0 => Some("ndots:1"),
            1 => None,
            2 => Some("ndots:2"),
            _ => Some("ndots:5"),
        });
        options.extend(match random.u8(..4) {
            0 => Some("attempts:1"),
            1 => Some("attempts:3"),
            _ => None,
        });
        for (option, of) in [
            ("rotate", 10),
            ("single-request", 12),
            ("use-vc", 16),
            ("no-aaaa", 16),
            ("edns0", 12),
        ] {
            if random.u8(..of) == 0 {
                options.push(option);
            }
        }
        let count = one(random, &[1, 1, 1, 2, 2, 3]);
        let names = candidates(&search);
        // Most faults are in all servers alike, as those of one cluster's DNS.
        let common = faults(random, &names);
        let servers = (0..count).map(|_| {
            let mut faults = common.clone();
            if count > 1 && random.bool() {
                faults.extend(self::faults(random, &names));
            }
            Server {
                is_closed: count > 1 && random.u8(..8) == 0,
                faults,
            }
        });
        Self {
            servers: servers.collect(),
            seed,
            search,
            options,
        }
    }

    /// Returns `true` if `resolv.conf` has this option.
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// Returns the kinds of all faults.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        let faults = self.servers.iter().flat_map(|server| &server.faults);
        faults.map(|fault| fault.kind)
    }

    /// Returns `resolv.conf`.
    pub(super) fn resolv_conf(&self) -> String {
        let servers = (0..self.servers.len()).map(|place| format!("nameserver {}", address(place)));
        let first = format!("search {}", self.search.join(" "));
        let last = format!("options {}", self.options.join(" "));
        let lines: Vec<_> = once(first).chain(servers).chain(once(last)).collect();
        lines.join("\n") + "\n"
    }
}

/// Returns the address of a server.
pub(super) fn address(place: usize) -> IpAddr {
    let last = u8::try_from(place).unwrap_or(u8::MAX).saturating_add(10);
    Ipv4Addr::new(10, 96, 0, last).into()
}

/// Returns the full names that may be looked up.
fn candidates(search: &[&str]) -> Vec<String> {
    let searched = search.iter().map(|suffix| format!("{NAME}.{suffix}."));
    searched.chain([format!("{NAME}.")]).collect()
}

fn one<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(..all.len())]
}

fn faults(random: &mut Rng, names: &[String]) -> Vec<Fault> {
    let count = one(random, &[0, 1, 1, 1, 2, 2, 3]);
    let fault = |_| Fault {
        name: match random.u8(..8) {
            0 => None,
            // The right one, and what comes before it.
            1..=3 => Some(KUBERNETES.to_owned()),
            4 | 5 => names.first().cloned(),
            _ => random.choice(names).cloned(),
        },
        family: match random.u8(..3) {
            0 => Some(RecordType::A),
            1 => Some(RecordType::AAAA),
            _ => None,
        },
        kind: kind(random),
    };
    (0..count).map(fault).collect()
}

fn kind(random: &mut Rng) -> Kind {
    const ALL: [Kind; 15] = [
        Kind::ServFail,
        Kind::Refused,
        Kind::NotImp,
        Kind::FormErr,
        Kind::NxDomain,
        Kind::NoData,
        Kind::Lame,
        Kind::Dangling,
        Kind::Stranger,
        Kind::Stranger,
        Kind::Drop,
        Kind::Drop,
        Kind::Garbage,
        Kind::Truncated,
        Kind::Soon,
    ];
    match random.u8(..20) {
        0 => Kind::TruncatedSilent,
        1 => Kind::TruncatedClosed,
        2 => Kind::Late(random.usize(..LATE.len())),
        _ => one(random, &ALL),
    }
}

impl Server {
    /// Returns what it answers.
    pub(super) fn behaviour(&self) -> Behaviour {
        let faults = self.faults.clone();
        Behaviour::new(move |received| {
            let (name, family) = (
                received.query.name().to_ascii(),
                received.query.query_type(),
            );
            let healthy = if name.eq_ignore_ascii_case(KUBERNETES) {
                Response::Ipv4(KUBERNETES_IP)
            } else {
                Response::Code(ResponseCode::NXDomain)
            };
            let fault = faults.iter().rev().find(|fault| {
                let of = |own: &String| own.eq_ignore_ascii_case(&name);
                fault.name.as_ref().is_none_or(of) && fault.family.is_none_or(|own| own == family)
            });
            fault.map_or_else(
                || healthy.clone(),
                |fault| fault.kind.response(healthy.clone()),
            )
        })
    }
}

impl Kind {
    fn response(self, healthy: Response) -> Response {
        match self {
            Self::ServFail => Response::Code(ResponseCode::ServFail),
            Self::Refused => Response::Code(ResponseCode::Refused),
            Self::NotImp => Response::Code(ResponseCode::NotImp),
            Self::FormErr => Response::Code(ResponseCode::FormErr),
            Self::NxDomain => Response::Code(ResponseCode::NXDomain),
            Self::NoData => Response::NoData,
            Self::Lame => Response::Lame,
            Self::Dangling => Response::Dangling,
            Self::Stranger => Response::Loopback,
            Self::Drop => Response::Drop,
            Self::Garbage => Response::Garbage,
            Self::Truncated => Response::Truncated(Box::new(healthy)),
            Self::TruncatedSilent => Response::Truncated(Box::new(Response::Drop)),
            Self::TruncatedClosed => Response::Truncated(Box::new(Response::Close)),
            Self::Soon => Response::Delayed(SOON, Box::new(healthy)),
            Self::Late(place) => Response::Delayed(LATE[place], Box::new(healthy)),
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}\n{}", self.seed, self.resolv_conf())?;
        for (place, server) in self.servers.iter().enumerate() {
            write!(f, "{}:", address(place))?;
            if server.is_closed {
                f.write_str(" closed")?;
            }
            for Fault { name, family, kind } in &server.faults {
                let name = name.as_deref().unwrap_or("every name");
                let family = family.map_or("A and AAAA".to_owned(), |family| family.to_string());
                write!(f, " {name} {family} {kind:?};")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
